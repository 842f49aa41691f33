//go:build unix

package servertest

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// rabbitScript waits for the name server of Erlang, which runs beside the broker on
// a port of its own and knows no other one, and becomes the broker. Without the wait
// Erlang would start a name server that outlives the broker.
const rabbitScript = `until epmd -names >/dev/null 2>&1; do sleep 0.02; done
exec "$0"`

// RabbitMQ starts a RabbitMQ broker of one node, with the user guest and the
// password guest. settings are lines of its rabbitmq.conf.
func RabbitMQ(ctx context.Context, settings ...string) (*Server, error) {
	return start(ctx, kind{
		name:  "rabbitmq-server",
		path:  "/usr/lib/rabbitmq/bin/rabbitmq-server", // what is in PATH changes to a user of its own
		ports: 3,                                       // for clients, for other nodes, and of the name server
		before: func(s *Server) error {
			lines := append([]string{"listeners.tcp.1 = " + s.Address(), "log.console = true", "log.file = false"}, settings...)
			return s.write(map[string]string{"rabbitmq.conf": strings.Join(lines, "\n") + "\n", "enabled_plugins": "[].\n"})
		},
		args: func(s *Server) []string { return []string{"-c", rabbitScript, s.path} },
		run:  "sh",
		env: func(s *Server) []string {
			return []string{
				"BESIDE=epmd -address 127.0.0.1 -port " + strconv.Itoa(s.ports[2]),
				"HOME=" + s.dir, "RABBITMQ_NODENAME=ringi" + strconv.Itoa(s.port) + "@localhost",
				"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", "RABBITMQ_NODE_PORT=" + strconv.Itoa(s.port),
				"RABBITMQ_DIST_PORT=" + strconv.Itoa(s.ports[1]), "ERL_EPMD_PORT=" + strconv.Itoa(s.ports[2]), "ERL_EPMD_ADDRESS=127.0.0.1",
				"RABBITMQ_MNESIA_BASE=" + s.dir + "/data", "RABBITMQ_LOG_BASE=" + s.dir + "/log",
				"RABBITMQ_CONFIG_FILE=" + s.dir + "/rabbitmq.conf", "RABBITMQ_ENABLED_PLUGINS_FILE=" + s.dir + "/enabled_plugins",
				"RABBITMQ_CONF_ENV_FILE=" + s.dir + "/none", "RABBITMQ_PID_FILE=" + s.dir + "/rabbitmq.pid",
				// The script that starts it would stay before it and keep its signals.
				"RABBITMQ_ALLOW_INPUT=true", "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-noinput",
			}
		},
		answer: rabbitAnswers,
	}, "rabbitmq-server")
}

// rabbitAnswers offers to speak AMQP 0-9-1: a broker that has begun answers with
// the frame of a method.
func rabbitAnswers(ctx context.Context, s *Server) error {
	conn, err := dial(ctx, s.Address())
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := conn.Write([]byte("AMQP\x00\x00\x09\x01")); err != nil {
		return err
	}
	frame := make([]byte, 1)
	if _, err := io.ReadFull(conn, frame); err != nil {
		return err
	}
	if frame[0] != 1 {
		return fmt.Errorf("it says %v", frame)
	}
	return nil
}
