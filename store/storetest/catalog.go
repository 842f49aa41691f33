package storetest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

func (s *subject) put(name, digest string, source int) (int, bool) {
	s.Helper()
	version, created, err := s.h.Catalog.PutDefinition(s.ctx, store.Definition{
		Tenant: tenant, Name: name, Digest: digest, Description: "about " + digest,
		Source: bytes.Repeat([]byte("x"), source), PublishedAt: at(1), PublishedBy: "alice",
	}, s.audit("", "publish"))
	s.must(err)
	return version, created
}

func catalogTests() []suiteTest {
	return []suiteTest{
		{"versions count up per name, and a digest keeps its version", func(s *subject) { // W2
			for _, c := range []struct {
				name, digest string
				version      int
				created      bool
			}{{"order", "d1", 1, true}, {"order", "d2", 2, true}, {"refund", "d1", 1, true}, {"order", "d1", 1, false}, {"order", "d3", 3, true}} {
				if version, created := s.put(c.name, c.digest, 5); version != c.version || created != c.created {
					s.Errorf("%s %s is version %d, created %v, want %d, %v", c.name, c.digest, version, created, c.version, c.created)
				}
			}
			records, err := s.h.Records.Audit(s.ctx, store.Key{Tenant: tenant}, 100)
			s.must(err)
			if len(records) != 5 || records[3].Answer != string(ringi.Repeated) || records[4].Answer != string(ringi.Accepted) {
				s.Errorf("audit records %+v, want five, the fourth repeated", records)
			}
		}},
		{"a version is read as it was put, 0 is the latest", func(s *subject) {
			s.put("order", "d1", 5)
			s.put("order", "d2", 6)
			for asked, want := range map[int]string{0: "d2", 1: "d1", 2: "d2"} {
				d, err := s.h.Catalog.Definition(s.ctx, tenant, "order", asked)
				s.must(err)
				if d.Digest != want || d.Name != "order" || d.Tenant != tenant || d.Description != "about "+want || !d.PublishedAt.Equal(at(1)) || d.PublishedBy != "alice" || len(d.Source) < 5 {
					s.Errorf("version %d is %+v, want %s", asked, d, want)
				}
			}
			for name, version := range map[string]int{"order": 3, "nothing": 0} {
				if _, err := s.h.Catalog.Definition(s.ctx, tenant, name, version); !errors.Is(err, store.ErrNotFound) {
					s.Errorf("%s %d: %v, want ErrNotFound", name, version, err)
				}
			}
			if _, err := s.h.Catalog.Definition(s.ctx, 2, "order", 0); !errors.Is(err, store.ErrNotFound) {
				s.Errorf("another tenant's: %v, want ErrNotFound", err)
			}
		}},
		{"lists go by name and newest version, in pages", func(s *subject) {
			s.put("refund", "d1", 5)
			for i := range 3 {
				s.put("order", fmt.Sprint("d", i), 5)
			}
			got := s.definitions(ringi.DefinitionQuery{Tenant: tenant, Limit: 2})
			if want := "[order 3 order 2][order 1 refund 1]"; got != want {
				s.Errorf("pages %s, want %s", got, want)
			}
			if got := s.definitions(ringi.DefinitionQuery{Tenant: tenant, Name: "order", Limit: 2}); got != "[order 3 order 2][order 1]" {
				s.Errorf("pages of one name %s", got)
			}
			if got := s.definitions(ringi.DefinitionQuery{Tenant: 2}); got != "[]" {
				s.Errorf("another tenant sees %s", got)
			}
		}},
		{"a page with sources is bounded by bytes", func(s *subject) {
			for i := range 3 {
				s.put("order", fmt.Sprint("d", i), 600<<10)
			}
			if got := s.definitions(ringi.DefinitionQuery{Tenant: tenant, Name: "order"}); got != "[order 3][order 2][order 1]" {
				s.Errorf("pages %s, want one source on each", got)
			}
			list, _, err := s.h.Catalog.Definitions(s.ctx, ringi.DefinitionQuery{Tenant: tenant})
			s.must(err)
			if len(list) != 3 || list[0].Source != nil {
				s.Errorf("a list of all names has %d rows and a source of %d bytes, want 3 and none", len(list), len(list[0].Source))
			}
		}},
		{"a cursor of another list is refused", func(s *subject) {
			_, _, err := s.h.Catalog.Definitions(s.ctx, ringi.DefinitionQuery{Tenant: tenant, After: "nonsense"})
			if ringi.ErrorCode(err) != ringi.CodeInvalid {
				s.Errorf("answer %v, want code invalid", err)
			}
		}},
	}
}

// definitions lists all pages of a query as text.
func (s *subject) definitions(q ringi.DefinitionQuery) string {
	s.Helper()
	text := ""
	for {
		list, next, err := s.h.Catalog.Definitions(s.ctx, q)
		s.must(err)
		names := []string{}
		for _, d := range list {
			names = append(names, d.Name, fmt.Sprint(d.Version))
		}
		text += fmt.Sprint(names)
		if next == "" {
			return text
		}
		q.After = next
	}
}
