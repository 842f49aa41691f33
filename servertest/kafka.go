//go:build unix

package servertest

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// kafkaScript gives the directory of a new broker its identity, and becomes the
// broker.
const kafkaScript = `[ -e data/meta.properties ] ||
	"$@" kafka.tools.StorageTool format -t cmluZ2ktc2VydmVydGVzdA -c server.properties || exit 1
exec "$@" kafka.Kafka server.properties`

// Kafka starts an Apache Kafka broker that is its own controller (KRaft). settings
// are lines of its server.properties, such as "num.partitions=3". A topic that
// nobody made comes into being when a client that asks for that writes to it, as
// Kafka has it; those of ringi do not ask.
//
// An acknowledged record outlives a crash of the broker, not one of the machine:
// Kafka leaves that to its replicas, and this one has none.
func Kafka(ctx context.Context, settings ...string) (*Server, error) {
	files, err := jars(ctx, kafkaPOM)
	if err != nil {
		return nil, err
	}
	return start(ctx, kind{
		name: "kafka", path: "java", run: "sh", ports: 2,
		before: func(s *Server) error {
			return s.write(map[string]string{"server.properties": kafkaProperties(s, settings)})
		},
		args: func(s *Server) []string {
			return append([]string{"-c", kafkaScript, "sh", s.path}, javaOptions(files)...)
		},
		answer: kafkaAnswers,
	}, javaPackage)
}

func kafkaProperties(s *Server, settings []string) string {
	controller := fmt.Sprintf("127.0.0.1:%d", s.ports[1])
	return strings.Join(append([]string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@" + controller,
		"listeners=PLAINTEXT://" + s.Address() + ",CONTROLLER://" + controller, "controller.listener.names=CONTROLLER",
		"advertised.listeners=PLAINTEXT://" + s.Address(), "log.dirs=data",
		// One node keeps what three would, and small: each partition is a directory.
		"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1", "transaction.state.log.num.partitions=1",
		"share.coordinator.state.topic.replication.factor=1", "share.coordinator.state.topic.min.isr=1",
		"log.cleaner.dedupe.buffer.size=8388608",
		// After a crash the broker is let in again when its session from before is
		// over, three seconds in place of nine.
		"broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=500",
		// A group begins as soon as its first member is there, not three seconds later.
		"group.initial.rebalance.delay.ms=0",
	}, settings...), "\n") + "\n"
}

// kafkaAnswers asks which versions of its requests the broker speaks. It answers
// only when its controller has let it in.
func kafkaAnswers(ctx context.Context, s *Server) error {
	conn, err := dial(ctx, s.Address())
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	// ApiVersions, version 0, correlation 7, no client id; its length comes first.
	if _, err := conn.Write([]byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff}); err != nil {
		return err
	}
	answer := make([]byte, 10) // length, correlation, error code
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if code := binary.BigEndian.Uint16(answer[8:]); code != 0 {
		return fmt.Errorf("it answers with error %d", code)
	}
	return nil
}

// kafkaTools are the classes behind the console tools.
// constant: only read.
var kafkaTools = map[string]string{
	"kafka-topics":           "org.apache.kafka.tools.TopicCommand",
	"kafka-configs":          "kafka.admin.ConfigCommand",
	"kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
	"kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
	"kafka-consumer-groups":  "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
}

// KafkaTool runs a console tool of Kafka, such as kafka-topics, against a broker
// that Kafka started, and returns what it printed on its standard output.
func KafkaTool(ctx context.Context, broker *Server, tool string, args ...string) (string, error) {
	class := kafkaTools[tool]
	if class == "" {
		return "", fmt.Errorf("servertest: no tool %q of Kafka is known here", tool)
	}
	files, err := jars(ctx, kafkaPOM)
	if err != nil {
		return "", err
	}
	all := append(javaOptions(files), class, "--bootstrap-server", broker.Address())
	cmd := exec.CommandContext(ctx, broker.path, append(all, args...)...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("servertest: %s: %w\n%s%s", tool, err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}
