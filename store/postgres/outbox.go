package postgres

import (
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	pgoutbox "github.com/ringiflow/ringi/outbox/postgres"
)

// relayConnections is how many connections a relay may use: one for the
// messages, one for its share of the partitions, one for people who look.
const relayConnections = 3

// openRelay opens the connections for relays, none of which is made before it
// is needed.
func openRelay(url string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	config.DialFunc = dial
	config.RuntimeParams[clientEncoding] = "UTF8"
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTime {
		config.ConnectTimeout = connectTime
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(relayConnections)
	db.SetMaxIdleConns(relayConnections)
	return db, nil
}

// Outbox returns the messages of the committed writes, for a relay, with the
// fleet that shares them out among the relays of several nodes and the desk for
// people. It has connections of its own, so that no relay holds up a commit.
func (s *Store) Outbox() *pgoutbox.Outbox { return s.outbox }
