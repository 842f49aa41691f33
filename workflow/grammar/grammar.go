package grammar

import "slices"

// The bounds of the language that the form knows.
const (
	// MaxWidth bounds the branches of one parallel or choose.
	MaxWidth = 256
	// MaxLabels bounds the labels of a definition: they are columns of the list row.
	MaxLabels = 16
	// MaxName bounds names, keys, titles and codes, in bytes.
	MaxName = 256
	// MaxDescription bounds text for people, in bytes.
	MaxDescription = 4096
	// MaxAttempts bounds retry.attempts.
	MaxAttempts = 1000
	// MaxQuorum bounds the quorum of a lane.
	MaxQuorum = 100
	// MaxHeaders bounds the headers of a request: what proxies let through.
	MaxHeaders = 50
	// MaxQuery bounds the parameters of a request.
	MaxQuery = 100
	// MaxExpected bounds the statuses that a request expects.
	MaxExpected = 50
	// MaxFactor bounds the growth of a pause.
	MaxFactor = 100
)

// A Kind is what a value is.
type Kind int

// The kinds of values. Fixed means that the value cannot be an expression.
const (
	Any        Kind = iota // any JSON value; texts in it may hold expressions
	Version                // the version of the language
	Name                   // a fixed, short text on one line: a name, a key, a code
	Prose                  // a fixed text for people, at most MaxDescription bytes
	Reason                 // prose that is not empty
	Title                  // a short text that may hold expressions
	Text                   // a text that may hold expressions
	KeyText                // a text, perhaps with expressions, that identifies something
	Who                    // group:NAME or user:ID, perhaps with expressions
	Identifier             // a fixed word that expressions can use as a name
	Word                   // one of Words
	Flag                   // true or false
	Count                  // a whole number from Low to High
	Factor                 // a number from 1 to MaxFactor
	Duration               // a whole number with one unit: 500ms, 90s, 15m, 4h, 3d
	Instant                // a time as in RFC 3339, or an expression
	Condition              // a bare expression that is true or false
	Object                 // a mapping, or an expression that yields one
	Table                  // a list, or an expression that yields one
	Schema                 // JSON Schema, draft 2020-12
	Address                // a text that begins with https:// or http://, perhaps with expressions
	Header                 // the name of an HTTP header; only as Names
	Map                    // a mapping with fixed keys: Of
	Named                  // a mapping with free keys that are Names; its values are Item
	List                   // a list of Item
	Steps                  // a list of steps
)

// A Value says what may stand somewhere.
type Value struct {
	Kind      Kind
	Words     []string // of Word
	Low, High int      // of Count
	Of        *Mapping // of Map, and of the items of Steps
	Item      *Value   // of List and Named
	Names     Kind     // of Named: Name, Identifier or Header
	MayBeNone bool     // a List, Named or Steps may be empty
	Most      int      // entries of List and Named; 0 is no bound of its own
	Reserved  []string // words that an Identifier, or the names of Named, cannot be
	Kept      string   // a beginning that the names of Named cannot have
}

// A Key is a key of a mapping with its value.
type Key struct {
	Name    string
	Doc     string // what it is for, for people who write definitions
	Default string // what it is when it is missing, as the file would have it; empty where that is nothing
	Needed  bool
	Example string   // what a file without a needed key could have
	Beside  []string // it has a meaning only beside one of these
	Value   Value
}

// A Mapping is a mapping with fixed keys.
type Mapping struct {
	What  string // in messages: "a step"
	Doc   string
	Keys  []Key // in their usual order
	OneOf []OneOf
	Rules []Rule
}

// OneOf are keys that exclude each other.
type OneOf struct {
	Keys   []string
	Needed bool // one of them must be there
}

// A Rule is what one key demands of another.
type Rule struct {
	If       []Is   // all of them
	Never    string // this key makes no sense then
	Contrary bool   // Never is no useless word but the contrary of what If says
	Once     bool   // there may be no more than one attempt, and so no pause between attempts
	Needs    string // this key must be there
	Why      string // for Never: why it makes no sense
	Instead  string // for Never: what to write
}

// Is says that a key has one of some values; without any, that it is there.
type Is struct {
	Key     string   // or the key of an inner mapping, as in http.method
	Words   []string // also true and false of a Flag
	Missing bool     // or that it is missing
}

// Names returns the names of the keys, in their usual order.
func (m *Mapping) Names() []string {
	out := make([]string, len(m.Keys))
	for i, k := range m.Keys {
		out[i] = k.Name
	}
	return out
}

// Key returns the key of that name, and false when there is none.
func (m *Mapping) Key(name string) (Key, bool) {
	i := slices.IndexFunc(m.Keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return m.Keys[i], true
}

// BesideOf returns the names of the keys that have a meaning only beside that one,
// and perhaps others.
func (m *Mapping) BesideOf(name string) (out []string) {
	for _, k := range m.Keys {
		if slices.Contains(k.Beside, name) {
			out = append(out, k.Name)
		}
	}
	return out
}

// Grammar is every mapping of the language.
type Grammar struct {
	Definition, Start, Defaults, Deadline, OnFailure *Mapping
	Step                                             *Mapping
	Probe, Compensate, Timeouts, Retry, Backoff      *Mapping
	HTTP, ProbeHTTP                                  *Mapping
	Approval, Show, Lane, Expires                    *Mapping
	Wait, WaitTimeout                                *Mapping
	Case, Parallel, Catch                            *Mapping
	Emit, Aggregate, Fail, Finish                    *Mapping
}

// New returns the grammar. Its parts refer to each other; nobody changes them.
func New() *Grammar {
	g := &Grammar{Step: &Mapping{}}
	g.small()
	g.calls()
	g.people()
	g.flow()
	g.step()
	g.definition()
	return g
}

// Verbs are the verbs of a step, in their usual order.
func (g *Grammar) Verbs() []string { return g.Step.OneOf[0].Keys }

// steps is a list of steps.
func (g *Grammar) steps(mayBeNone bool) Value {
	return Value{Kind: Steps, Of: g.Step, MayBeNone: mayBeNone}
}

// Effects are the effect contracts, the one without promises last.
func Effects() []string { return []string{"pure", "idempotent", "probeable", "at_most_once"} }

func of(k Kind) Value                     { return Value{Kind: k} }
func mapping(m *Mapping) Value            { return Value{Kind: Map, Of: m} }
func list(item Value) Value               { return Value{Kind: List, Item: &item} }
func words(words ...string) Value         { return Value{Kind: Word, Words: words} }
func count(low, high int) Value           { return Value{Kind: Count, Low: low, High: high} }
func is(key string, words ...string) []Is { return []Is{{Key: key, Words: words}} }

// reservedWords cannot stand behind a dot in an expression.
func reservedWords() []string { return []string{"in", "true", "false", "null"} }
