//go:build unix

package servertest

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
)

// Redis starts a Redis server whose answers mean that a write is on disk
// (appendfsync always), so that a crash loses nothing that was acknowledged.
// settings are further options of its command line, such as "--maxmemory", "5mb".
func Redis(ctx context.Context, settings ...string) (*Server, error) {
	return start(ctx, kind{
		name: "redis-server",
		args: func(s *Server) []string {
			return append([]string{
				"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "",
				"--appendonly", "yes", "--appendfsync", "always", "--daemonize", "no",
			}, settings...)
		},
		answer: redisAnswers,
	}, "redis-server")
}

// redisAnswers asks for a PONG: while the server reads its log it answers otherwise.
func redisAnswers(ctx context.Context, s *Server) error {
	conn, err := dial(ctx, s.Address())
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // a server that is stuck answers nothing
	if _, err := fmt.Fprint(conn, "PING\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && line != "+PONG\r\n" {
		err = fmt.Errorf("it says %q", line)
	}
	return err
}
