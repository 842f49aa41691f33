package draw

import "github.com/ringiflow/ringi"

// People are the persons of a world, and a machine that would like to be one.
func People() []ringi.Actor {
	return []ringi.Actor{
		{ID: "alice", Kind: ringi.Person, Groups: []string{"finance"}},
		{ID: "bob", Kind: ringi.Person, Groups: []string{"finance", "managers"}},
		{ID: "carol", Kind: ringi.Person, Groups: []string{"managers"}},
		{ID: "dave", Kind: ringi.Person, Groups: []string{"managers", "finance"}},
		{ID: "erin", Kind: ringi.Person, Groups: []string{"finance"}}, // who requests
		{ID: "robot", Kind: ringi.Machine, Groups: []string{"finance", "managers"}},
	}
}

// Person finds one of them.
func Person(id string) (ringi.Actor, bool) {
	for _, p := range People() {
		if p.ID == id {
			return p, true
		}
	}
	return ringi.Actor{}, false
}
