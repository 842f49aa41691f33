//go:build unix

package servertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Connector is how Debezium reads an outbox: what a user writes into the
// configuration of a connector beside the address of the database. All else is as
// Debezium and its outbox router have it.
//
// A key is text and a payload is bytes; without the two converters Kafka Connect
// would put both into JSON of its own. The converter of payloads leaves to another
// one what is none, such as heartbeats. Messages that other programs write into the
// log, which the router cannot bear, are left out.
func Connector() map[string]string {
	return map[string]string{
		"name":                   "outbox",
		"connector.class":        "io.debezium.connector.postgresql.PostgresConnector",
		"plugin.name":            "pgoutput",
		"topic.prefix":           "ringi",
		"table.include.list":     "public.outbox",
		"transforms":             "outbox",
		"transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
		"key.converter":          "org.apache.kafka.connect.storage.StringConverter",
		"value.converter":        "io.debezium.converters.BinaryDataConverter",
		"value.converter.delegate.converter.type": "org.apache.kafka.connect.json.JsonConverter",
		"message.prefix.exclude.list":             ".*",
	}
}

// Debezium starts a worker of Kafka Connect, alone, with Debezium's connector for
// PostgreSQL as its plugin. It writes to the broker what connector, the
// configuration of one, says; Connector is where to begin. The server answers when
// the connector streams.
//
// What it has sent it remembers in a file of its own, so that it goes on after a
// crash where it was a moment ago.
func Debezium(ctx context.Context, broker *Server, connector map[string]string) (*Server, error) {
	worker, err := jars(ctx, kafkaPOM)
	if err != nil {
		return nil, err
	}
	plugin, err := jars(ctx, debeziumPOM)
	if err != nil {
		return nil, err
	}
	return start(ctx, kind{
		name: "connect", path: "java",
		before: func(s *Server) error { return writeConnect(s, broker, plugin, connector) },
		args: func(*Server) []string {
			return append(javaOptions(worker), "org.apache.kafka.connect.cli.ConnectStandalone", "worker.properties", "connector.json")
		},
		answer: func(ctx context.Context, s *Server) error { return connectAnswers(ctx, s, connector["name"]) },
	}, javaPackage)
}

// writeConnect writes what the worker reads at its start.
func writeConnect(s, broker *Server, plugin []string, connector map[string]string) error {
	// A plugin is a directory of jars, which has its classes for itself.
	dir := filepath.Join(s.dir, "plugins", "debezium")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("servertest: %w", err)
	}
	for _, file := range plugin {
		if strings.Contains(file, "/org/apache/kafka/") {
			continue // the worker has its own
		}
		if err := os.Symlink(file, filepath.Join(dir, filepath.Base(file))); err != nil {
			return fmt.Errorf("servertest: %w", err)
		}
	}
	text, err := json.Marshal(connector)
	if err != nil {
		return fmt.Errorf("servertest: %w", err)
	}
	return s.write(map[string]string{
		"connector.json": string(text),
		"worker.properties": strings.Join([]string{
			"bootstrap.servers=" + broker.Address(), "listeners=http://" + s.Address(),
			"plugin.path=" + filepath.Join(s.dir, "plugins"), "plugin.discovery=service_load",
			"key.converter=org.apache.kafka.connect.json.JsonConverter", "value.converter=org.apache.kafka.connect.json.JsonConverter",
			"offset.storage.file.filename=" + filepath.Join(s.dir, "offsets"), "offset.flush.interval.ms=1000",
		}, "\n") + "\n",
	})
}

// connectAnswers asks for the connector's state. One whose task has failed ends the
// wait: nobody starts it again.
func connectAnswers(ctx context.Context, s *Server, name string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Address()+"/connectors/"+name+"/status", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var status struct {
		Tasks []struct{ State, Trace string }
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it says %s: %s", resp.Status, body)
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return err
	}
	if len(status.Tasks) == 0 {
		return errors.New("its connector has no task yet")
	}
	if i := slices.IndexFunc(status.Tasks, func(t struct{ State, Trace string }) bool { return t.State != "RUNNING" }); i >= 0 {
		return fmt.Errorf("its task is %s: %s", status.Tasks[i].State, status.Tasks[i].Trace)
	}
	return nil
}
