package store

import (
	"maps"
	"slices"
)

// Copy returns a second Memory that holds what this one holds now and changes
// on its own from here on, under another incarnation: a backup, and what is
// restored from one.
func (m *Memory) Copy(incarnation string) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMemory(MemoryConfig{Now: m.now, Incarnation: incarnation})
	c.outbox.CopyOf(&m.outbox)
	c.turn = m.turn
	c.audit = slices.Clone(m.audit)
	c.messages, c.audited = maps.Clone(m.messages), maps.Clone(m.audited)
	for name, versions := range m.catalog {
		c.catalog[name] = slices.Clone(versions)
	}
	for key, e := range m.events {
		event := *e
		c.events[key] = &event
	}
	for key, r := range m.runs {
		c.runs[key] = r.copy()
		if m.open[key] != nil {
			c.open[key] = c.runs[key]
		}
	}
	for key, r := range m.keys {
		c.keys[key] = c.runs[r.key]
	}
	return c
}

// copy copies the rows. Stored bytes are shared: nobody writes into them.
func (r *memoryRun) copy() *memoryRun {
	c := newMemoryRun(r.key, r.row)
	c.log = slices.Clone(r.log)
	if r.snapshot != nil {
		s := *r.snapshot
		c.snapshot = &s
	}
	for lane, t := range r.tasks {
		task := *t
		c.tasks[lane] = &task
	}
	for id, t := range r.timers {
		timer := *t
		c.timers[id] = &timer
	}
	maps.Copy(c.waits, r.waits)
	maps.Copy(c.approvals, r.approvals)
	maps.Copy(c.incidents, r.incidents)
	return c
}
