package storetest

import (
	"fmt"
	"slices"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

func listTests() []suiteTest {
	return []suiteTest{
		{"runs come newest first, in pages", func(s *subject) {
			var want []ringi.RunID
			for range 5 {
				want = append(want, s.started().Key.Run)
			}
			slices.Reverse(want)
			got, pages := s.runs(ringi.RunQuery{Tenant: tenant, Limit: 2})
			if fmt.Sprint(got) != fmt.Sprint(want) || pages != 3 {
				s.Errorf("runs %v in %d pages, want %v in 3", got, pages, want)
			}
			if got, _ := s.runs(ringi.RunQuery{Tenant: 2}); len(got) != 0 {
				s.Errorf("another tenant sees %v", got)
			}
		}},
		{"runs are found by status, definition and key", runsFiltered},
		{"approvals come oldest first, in pages, of one run or all", approvalPages},
		{"a person's approvals are those that the person may vote on", approvalsFor},
		{"incidents come oldest first, in pages, of one run or all", incidentPages},
		{"cursors of other lists are refused", func(s *subject) {
			for _, cursor := range []string{"nonsense!", store.Cursor("a", "b")} {
				_, _, runs := s.h.Records.Runs(s.ctx, ringi.RunQuery{Tenant: tenant, After: cursor})
				_, _, approvals := s.h.Records.Approvals(s.ctx, ringi.ApprovalQuery{Tenant: tenant, After: cursor})
				_, _, incidents := s.h.Records.Incidents(s.ctx, ringi.IncidentQuery{Tenant: tenant, After: cursor})
				for name, err := range map[string]error{"Runs": runs, "Approvals": approvals, "Incidents": incidents} {
					if ringi.ErrorCode(err) != ringi.CodeInvalid {
						s.Errorf("%s: answer %v, want code invalid", name, err)
					}
				}
			}
		}},
	}
}

// runs lists the ids of all pages of a query.
func (s *subject) runs(q ringi.RunQuery) (ids []ringi.RunID, pages int) {
	s.Helper()
	for {
		list, next, err := s.h.Records.Runs(s.ctx, q)
		s.must(err)
		pages++
		for _, r := range list {
			ids = append(ids, r.Key.Run)
		}
		if next == "" {
			return ids, pages
		}
		q.After = next
	}
}

func runsFiltered(s *subject) {
	var all []ringi.RunID
	for i, status := range []ringi.Status{ringi.Running, ringi.Waiting, ringi.Completed, ringi.Failed, ringi.Running} {
		l := s.run()
		w := l.start(fmt.Sprint("o-", i))
		w.Start.Status = status
		if i == 4 {
			w.Start.Definition, w.Start.StartKey = "refund", "o-0"
		}
		l.do(w)
		all = append(all, l.Key.Run)
	}
	for _, c := range []struct {
		q    ringi.RunQuery
		want []int
	}{
		{ringi.RunQuery{Status: []ringi.Status{ringi.Running}}, []int{4, 0}},
		{ringi.RunQuery{Status: []ringi.Status{ringi.Completed, ringi.Waiting}}, []int{2, 1}},
		{ringi.RunQuery{Status: []ringi.Status{ringi.Failed, ringi.Running}, Definition: "order"}, []int{3, 0}},
		{ringi.RunQuery{Definition: "refund"}, []int{4}},
		{ringi.RunQuery{Key: "o-0"}, []int{4, 0}},
		{ringi.RunQuery{Key: "o-0", Definition: "order"}, []int{0}},
		{ringi.RunQuery{Key: "none"}, nil},
	} {
		c.q.Tenant, c.q.Limit = tenant, 1
		var want []ringi.RunID
		for _, i := range c.want {
			want = append(want, all[i])
		}
		if got, _ := s.runs(c.q); fmt.Sprint(got) != fmt.Sprint(want) {
			s.Errorf("%+v lists %v, want %v", c.q, got, want)
		}
	}
}

// ask starts a run with an open approval.
func (s *subject) ask(step string, opened float64, change func(*ringi.ApprovalRow)) *line {
	s.Helper()
	l := s.run()
	row := s.approval(step, at(opened))
	if change != nil {
		change(row)
	}
	w := l.start("")
	w.Approvals = []store.ApprovalChange{{Step: step, Row: row}}
	l.do(w)
	return l
}

// approvals lists "run step" of all pages of a query.
func (s *subject) approvals(q ringi.ApprovalQuery) (texts []string) {
	s.Helper()
	for {
		list, next, err := s.h.Records.Approvals(s.ctx, q)
		s.must(err)
		for _, a := range list {
			texts = append(texts, fmt.Sprintf("%s %s", a.Run, a.Step))
			if a.Definition != "order" || a.Requester != "carol" || a.Digest != "s1" || a.OpenedAt.IsZero() {
				s.Errorf("approval %+v is not whole", a)
			}
		}
		if next == "" {
			return texts
		}
		q.After = next
	}
}

func approvalPages(s *subject) {
	late, early, middle := s.ask("a", 3, nil), s.ask("b", 1, nil), s.ask("c", 2, nil)
	want := []string{string(early.Key.Run) + " b", string(middle.Key.Run) + " c", string(late.Key.Run) + " a"}
	if got := s.approvals(ringi.ApprovalQuery{Tenant: tenant, Limit: 1}); fmt.Sprint(got) != fmt.Sprint(want) {
		s.Errorf("approvals %v, want %v", got, want)
	}
	if got := s.approvals(ringi.ApprovalQuery{Tenant: tenant, Run: middle.Key.Run}); fmt.Sprint(got) != fmt.Sprint(want[1:2]) {
		s.Errorf("approvals of one run %v, want %v", got, want[1:2])
	}
	if got := s.approvals(ringi.ApprovalQuery{Tenant: 2}); len(got) != 0 {
		s.Errorf("another tenant sees %v", got)
	}
}

func approvalsFor(s *subject) {
	open := s.ask("open", 1, nil)
	s.ask("voted", 2, func(r *ringi.ApprovalRow) {
		r.Approval.Votes = []ringi.Vote{{Person: "alice", Approve: true, Lanes: []int{0}, At: at(3)}}
	})
	s.ask("others", 3, func(r *ringi.ApprovalRow) { r.Approval.Lanes[0].From = []string{"group:managers"} })
	s.ask("expired", 4, func(r *ringi.ApprovalRow) { r.Approval.ExpiresAt = at(-1e8) })
	mine := s.ask("mine", 5, func(r *ringi.ApprovalRow) { r.Approval.Lanes[0].From = []string{"user:alice"} })
	alice := &ringi.Actor{ID: "alice", Kind: ringi.Person, Groups: []string{"finance"}}
	want := []string{string(open.Key.Run) + " open", string(mine.Key.Run) + " mine"}
	for _, limit := range []int{1, 10} {
		if got := s.approvals(ringi.ApprovalQuery{Tenant: tenant, For: alice, Limit: limit}); fmt.Sprint(got) != fmt.Sprint(want) {
			s.Errorf("approvals for alice in pages of %d: %v, want %v", limit, got, want)
		}
	}
	for _, nobody := range []ringi.Actor{{ID: "carol", Kind: ringi.Person, Groups: []string{"finance"}}, {ID: "alice", Kind: ringi.Machine, Groups: []string{"finance"}}} {
		if got := s.approvals(ringi.ApprovalQuery{Tenant: tenant, For: &nobody, Run: open.Key.Run}); len(got) != 0 {
			s.Errorf("%s %s may vote on %v", nobody.Kind, nobody.ID, got)
		}
	}
}

func incidentPages(s *subject) {
	type placed struct {
		l     *line
		id    int64
		since float64
	}
	open := func(id int64, since float64) placed {
		l := s.run()
		w := l.start("")
		w.Incidents = []store.IncidentChange{{ID: id, Row: s.incident(id, at(since))}}
		l.do(w)
		return placed{l, id, since}
	}
	third, first, second := open(4, 9), open(7, 1), open(2, 5)
	var want []string
	for _, p := range []placed{first, second, third} {
		want = append(want, fmt.Sprint(p.l.Key.Run, p.id))
	}
	list := func(q ringi.IncidentQuery) (texts []string) {
		for {
			rows, next, err := s.h.Records.Incidents(s.ctx, q)
			s.must(err)
			for _, r := range rows {
				texts = append(texts, fmt.Sprint(r.Run, r.ID))
				if r.Definition != "order" || r.Kind != ringi.IncidentUnknown || len(r.Allowed) != 2 {
					s.Errorf("incident %+v is not whole", r)
				}
			}
			if next == "" {
				return texts
			}
			q.After = next
		}
	}
	if got := list(ringi.IncidentQuery{Tenant: tenant, Limit: 1}); fmt.Sprint(got) != fmt.Sprint(want) {
		s.Errorf("incidents %v, want %v", got, want)
	}
	if got := list(ringi.IncidentQuery{Tenant: tenant, Run: second.l.Key.Run}); fmt.Sprint(got) != fmt.Sprint(want[1:2]) {
		s.Errorf("incidents of one run %v, want %v", got, want[1:2])
	}
}
