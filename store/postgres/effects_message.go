package postgres

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
)

// messages come last: the rows of aggregate heads are the only ones that runs
// share, and are held until the commit.
func (p *plan) messages() error {
	m := newMessageTable()
	for _, i := range p.order {
		for n := range p.writes[i].Messages {
			if err := m.add(&p.writes[i].Messages[n]); err != nil {
				return &badRow{i, err}
			}
		}
	}
	if m.rows > 0 {
		p.calls = append(p.calls, m.call())
	}
	return nil
}

// messageTable is messages and, for each aggregate, how many it gets.
type messageTable struct {
	table
	id, tenant, destination, aggregateType, aggregateID, kind *column
	payload, content, headers, at, back                       *column
	ids                                                       map[string]bool
	of                                                        []outbox.Key // of each message; zero: unordered
	count                                                     map[outbox.Key]int64
}

func newMessageTable() *messageTable {
	m := &messageTable{
		id: uuids(), tenant: ints(), destination: texts(), aggregateType: texts(), aggregateID: texts(), kind: texts(),
		payload: bytesList(), content: texts(), headers: texts(), at: times(), back: ints(),
		ids: map[string]bool{}, count: map[outbox.Key]int64{},
	}
	m.columns = []*column{m.id, m.tenant, m.destination, m.aggregateType, m.aggregateID, m.kind, m.payload, m.content, m.headers, m.at, m.back}
	return m
}

func (m *messageTable) add(msg *outbox.Message) error {
	if err := msg.Check(); err != nil {
		return err
	}
	if msg.Seq != 0 {
		return fmt.Errorf("message %s has number %d before the insert; leave it 0", msg.ID, msg.Seq)
	}
	if m.ids[msg.ID] {
		return fmt.Errorf("message %s: %w", msg.ID, outbox.ErrDuplicate)
	}
	m.ids[msg.ID] = true
	headers := []byte("{}")
	if len(msg.Headers) > 0 {
		var err error
		if headers, err = json.Marshal(msg.Headers); err != nil {
			return fmt.Errorf("%w: headers of message %s: %w", errEncode, msg.ID, err)
		}
	}
	m.rows++
	m.id.run(ringi.RunID(msg.ID)) // the same form: a UUID
	m.tenant.int(msg.Tenant)
	m.destination.text(msg.Destination)
	m.aggregateType.text(msg.AggregateType)
	m.aggregateID.text(msg.AggregateID)
	m.kind.text(msg.Type)
	m.payload.bytes(msg.Payload)
	m.content.text(msg.ContentType)
	m.headers.bytes(headers)
	m.at.time(msg.CreatedAt)
	var key outbox.Key
	if !msg.Unordered {
		key = msg.Key()
		m.count[key]++
	}
	m.of = append(m.of, key)
	return nil
}

// call numbers the messages of each aggregate backwards from its last one,
// whose number only the database knows.
func (m *messageTable) call() *call {
	left := maps.Clone(m.count)
	for _, key := range m.of {
		if key == (outbox.Key{}) {
			m.back.null()
			continue
		}
		left[key]--
		m.back.int(left[key])
	}
	tenant, kind, id, n := ints(), texts(), texts(), ints()
	for _, key := range slices.SortedFunc(maps.Keys(m.count), compareAggregates) {
		tenant.int(key.Tenant)
		kind.text(key.AggregateType)
		id.text(key.AggregateID)
		n.int(m.count[key])
	}
	c := m.table.call(textMessages, false)
	c.list(tenant, kind, id, n)
	return c
}

// compareAggregates is the order in which every writer of the outbox takes the
// heads.
func compareAggregates(a, b outbox.Key) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.AggregateType, b.AggregateType), cmp.Compare(a.AggregateID, b.AggregateID))
}
