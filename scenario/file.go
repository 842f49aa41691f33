package scenario

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
)

// A Place is a position in a scenario file, both from 1.
type Place struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// A Problem is something wrong with a scenario file, or something that came out
// otherwise than it says.
type Problem struct {
	File string `json:"file"`
	Place
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"`
}

// String is the problem on one line.
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	if p.Suggestion != "" {
		s += "; " + p.Suggestion
	}
	return s
}

// A File is a file of scenarios as it was read. It is never changed, and may be
// played by any number of goroutines.
type File struct {
	Name       string
	Definition string // the file of the definition, as written; "" when the name tells
	Scenarios  []*Scenario
	people     map[string]person
}

type person struct {
	at     Place
	groups []string
}

// A Scenario is one course of one run.
type Scenario struct {
	Name string
	At   Place

	file    *File
	start   opening
	answers map[string]script // by activity
	steps   map[string]script // by step, step/undo, step/probe
	moves   []move
	expect  *expectation
}

// An opening is how a run is started.
type opening struct {
	at    Place
	by    string
	key   string
	input json.RawMessage
	when  time.Time
}

// A script is what a call is answered, attempt by attempt; the last entry answers
// all that follow.
type script struct {
	at      Place
	answers []answer
}

// An answer is what one attempt is answered.
type answer struct {
	at      Place
	lost    bool
	output  json.RawMessage
	failure *ringi.Failure
	takes   time.Duration
}

// A move is something that happens to a run from outside.
type move struct {
	at      Place
	word    string // one of moveWords
	step    string
	by      string
	comment string // of a vote
	reason  string
	pass    time.Duration
	event   ringi.SentEvent
	resolve ringi.ResolveIncident
	refused string // the code with which it must be refused
	expect  *expectation
}

// An expectation is what must be true at a moment. What it does not name may be
// anything: a nil list is not named, an empty one says that there is nothing.
type expectation struct {
	at         Place
	status     *word
	waitingFor *word
	output     *value
	path       []pathEntry
	steps      []stepWish
	undone     []word
	emitted    []messageWish
	left       []word
	cause      *causeWish
	incident   *incidentWish
	calls      []callWish
}

type word struct {
	at   Place
	text string
}

type value struct {
	at  Place
	doc json.RawMessage // canonical
}

type pathEntry struct {
	at      Place
	step    string
	outcome string
}

type stepWish struct {
	at       Place
	step     string
	outcome  *word
	attempts *count
	output   *value
	undo     *word
}

type count struct {
	at Place
	n  int
}

type messageWish struct {
	at            Place
	typ           string
	aggregateType *word
	aggregateID   *word
	data          *value
}

type causeWish struct{ code, step *word }

type incidentWish struct{ kind, step *word }

// A callWish is how often an activity is handed out, or with which inputs.
type callWish struct {
	at       Place
	activity string
	times    *count
	inputs   []value
}
