package wal

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pglogrepl"
)

// table is where the columns of an insert stand.
type table struct {
	id, tenant, aggregateID, destination int
	known                                bool
}

// entry reads one entry of the log.
func (s *session) entry(data []byte) error {
	parsed, err := pglogrepl.Parse(data)
	if err != nil {
		return fmt.Errorf("read an entry of the log: %w", err)
	}
	switch e := parsed.(type) {
	case *pglogrepl.RelationMessage:
		return s.describe(e)
	case *pglogrepl.BeginMessage:
		s.desk.begin()
	case *pglogrepl.InsertMessage:
		return s.insert(e.Tuple)
	case *pglogrepl.CommitMessage:
		s.desk.commit(e.TransactionEndLSN)
	case *pglogrepl.LogicalDecodingMessage:
		slot, at, ours := strings.Cut(string(e.Content), " ")
		if written, err := strconv.ParseInt(at, 10, 64); ours && err == nil && e.Prefix == heartbeat && slot == s.slot {
			s.beat.Store(written)
		}
	}
	return nil
}

// describe finds the columns; it comes before the first row, and again when the
// table was altered.
func (s *session) describe(r *pglogrepl.RelationMessage) error {
	s.table = table{known: true}
	for name, at := range map[string]*int{"id": &s.table.id, "tenant": &s.table.tenant, "aggregateid": &s.table.aggregateID, "destination": &s.table.destination} {
		*at = -1
		for i, c := range r.Columns {
			if c.Name == name {
				*at = i
			}
		}
		if *at < 0 {
			return fmt.Errorf("the publication has no column %s of %s.%s: drop it, so that it is made anew", name, r.Namespace, r.RelationName)
		}
	}
	return nil
}

// insert hands a message on.
func (s *session) insert(row *pglogrepl.TupleData) error {
	t := s.table
	if !t.known || row == nil || len(row.Columns) <= max(t.id, t.tenant, t.aggregateID, t.destination) {
		return fmt.Errorf("a row of %d columns in the log does not fit to its table", t.id)
	}
	text := func(at int) string { return string(row.Columns[at].Data) }
	tenant, err := strconv.ParseInt(text(t.tenant), 10, 64)
	if err != nil {
		return fmt.Errorf("the tenant of a message in the log: %w", err)
	}
	s.desk.add(message{id: text(t.id), destination: text(t.destination), aggregateID: text(t.aggregateID), tenant: tenant})
	return nil
}

// quoteText writes the inside of a text as PostgreSQL reads it.
func quoteText(text string) string { return strings.ReplaceAll(text, "'", "''") }
