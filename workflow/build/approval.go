package build

// Approval waits for people.
type Approval struct {
	Title       string // may hold expressions, as the other texts
	Summary     string
	Risk        string // "low", "normal" (the default) or "high"
	Subject     any    // Fields, or Expr of an object: exactly what is approved
	Show        []Show
	Consequence string
	Ask         []Lane
	Separation  []string // who may not vote: group:NAME and user:ID
	Expires     Duration // then it is rejected; zero is the default
	GoOn        bool     // a rejection does not fail the step
}

// Show is a line, or with Table a list of objects, that the people see.
type Show struct {
	Label string
	Value any
	Table any // in place of Value
}

// A Lane is a group of people and how many of them must agree.
type Lane struct {
	Name   string
	From   []string // group:NAME and user:ID
	Quorum int      // 0 is 1
}

func (v Approval) write(step object) {
	o := object{}
	o.text("title", v.Title)
	o.text("summary", v.Summary)
	o.text("risk", v.Risk)
	o.value("subject", v.Subject)
	o.text("consequence", v.Consequence)
	var show, ask []object
	for _, s := range v.Show {
		line := object{"label": s.Label}
		line.value("value", s.Value)
		line.value("table", s.Table)
		show = append(show, line)
	}
	if show != nil {
		o["show"] = show
	}
	for _, l := range v.Ask {
		lane := object{"from": l.From}
		lane.text("name", l.Name)
		if l.Quorum != 0 {
			lane["quorum"] = l.Quorum
		}
		ask = append(ask, lane)
	}
	o["ask"] = ask
	if len(v.Separation) > 0 {
		o["separation"] = v.Separation
	}
	if v.Expires != (Duration{}) {
		o["expires"] = object{"after": v.Expires.String(), "then": "reject"}
	}
	if v.GoOn {
		o["on_reject"] = "continue"
	}
	step["approval"] = o
}
