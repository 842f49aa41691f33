package draw

// The activities of the simulated world, by what their services bear.
const (
	ActivityLook = "work.look" // only reads
	ActivityPut  = "work.put"  // honours its key
	ActivityPay  = "work.pay"  // does it again each time, and can be asked
	ActivityMail = "work.mail" // does it again each time
	ActivityFind = "work.find" // asks about a pay
	ActivityUndo = "work.undo" // undoes, honouring its key
	ActivityTake = "work.take" // undoes, again each time
	ActivityHand = "work.hand" // what a person orders in place of an undo
)

// Activities are what workers of the default queue serve.
func Activities() []string {
	return []string{ActivityLook, ActivityPut, ActivityPay, ActivityMail, ActivityFind, ActivityUndo, ActivityTake, ActivityHand}
}

// activity draws a call with its contract.
func (g *designer) activity(s object, id string, depth int, v *view) object {
	effects := []string{"pure", "idempotent", "idempotent", "probeable", "probeable", "at_most_once", "at_most_once"}
	if g.doubtful {
		effects = []string{"probeable", "probeable", "probeable", "at_most_once"}
	}
	effect := One(g.d, effects...)
	name := map[string]string{"pure": ActivityLook, "idempotent": ActivityPut, "probeable": ActivityPay, "at_most_once": ActivityMail}[effect]
	s = append(s, field{"activity", name})
	if effect != "at_most_once" || g.d.Hit(0.9) {
		s = append(s, field{"effect", effect})
	}
	s = append(s, field{"with", object{{"n", quote("${ " + g.number(v) + " }")}, {"s", quote("${ input.s }")}}})
	if g.d.Hit(0.15) {
		s = append(s, field{"queue", QueueSide})
	}
	if effect == "idempotent" && g.d.Hit(0.15) {
		s = append(s, field{"key", quote("own/${ run.id }/" + id)})
	}
	s = append(s, field{"timeouts", g.timeouts()})
	if r := g.retry(effect); r != nil {
		s = append(s, field{"retry", r})
	}
	pivot := 0.1
	if g.doubtful && g.steps == 1 {
		pivot = 0.4 // what fails behind it a person may order again, also when its effect was found and undone meanwhile
	}
	irreversible := effect != "pure" && g.d.Hit(pivot)
	undone := effect != "pure" && !irreversible && g.d.Hit(0.75)
	switch {
	case irreversible:
		s = append(s, field{"irreversible", "true"}, field{"accepted", quote("the simulator means it")})
	case undone:
		s = append(s, field{"compensate", g.compensate(v)})
	}
	s = g.doubt(s, effect, undone)
	if effect == "probeable" {
		s = append(s, field{"probe", object{{"activity", ActivityFind}, {"with", object{{"key", quote("${ step.key }")}}}}})
	}
	answers := g.d.Hit(0.7)
	if answers {
		s = append(s, field{"output", object{
			{"type", "object"},
			{"required", list("id", "n")},
			{"properties", object{{"id", object{{"type", "string"}}}, {"n", object{{"type", "number"}}}}},
		}})
	}
	handled := g.catch(s, depth, v, "declined", "timed_out", "bad_output", "expression", "*")
	if answers && !assumes(s) && len(handled) == len(s) {
		v.outputs = append(v.outputs, id) // certain for all that stands behind
	}
	return handled
}

// QueueSide is the second queue, which not every worker serves.
const QueueSide = "side"

// assumes reports whether a run can go on behind a step without its output.
func assumes(s object) bool {
	for _, f := range s {
		if f.key == "on_unknown" && f.value == "assume_applied" {
			return true
		}
	}
	return false
}

func (g *designer) timeouts() object {
	t := object{
		{"attempt", One(g.d, "6s", "15s", "40s", "5m")},
		{"total", One(g.d, "5m", "10m", "1h")},
		{"heartbeat", One(g.d, "6s", "12s", "30s")},
	}
	if g.d.Hit(0.2) {
		t = append(t, field{"queue", One(g.d, "10s", "1m")})
	}
	return t
}

func (g *designer) retry(effect string) object {
	if effect == "at_most_once" || !g.d.Hit(0.7) {
		return nil
	}
	attempts := g.d.From(1, 4)
	r := object{{"attempts", string(rune('0' + attempts))}}
	if attempts > 1 {
		r = append(r, field{"backoff", object{{"initial", One(g.d, "300ms", "1s", "4s")}, {"factor", "2"}, {"max", "30s"}}})
	}
	if g.d.Hit(0.5) {
		codes := list("declined")
		if attempts > 2 && effect != "idempotent" { // there it would settle what the service has not
			codes = list("declined", "flaky")
		}
		r = append(r, field{"stop_on", codes})
	}
	return r
}

func (g *designer) compensate(v *view) object {
	c := object{{"activity", ActivityUndo}, {"with", object{{"key", quote("${ step.key }")}, {"n", quote("${ " + g.number(v) + " }")}}}}
	switch {
	case g.d.Hit(0.25):
		c[0].value = ActivityTake
		c = append(c, field{"effect", "at_most_once"})
	case g.d.Hit(0.4):
		c = append(c, field{"retry", object{{"attempts", "2"}, {"backoff", object{{"initial", "1s"}, {"factor", "2"}, {"max", "30s"}}}}})
	}
	return c
}

// doubt draws what is done when nobody knows.
func (g *designer) doubt(s object, effect string, undone bool) object {
	if effect == "pure" || effect == "idempotent" || !g.d.Hit(0.6) {
		return s
	}
	ways := []string{"incident", "assume_applied", "assume_not_applied", "fail"}
	if undone {
		ways = append(ways, "compensate", "compensate")
	}
	return append(s, field{"on_unknown", One(g.d, ways...)})
}
