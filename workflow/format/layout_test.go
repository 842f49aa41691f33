package format_test

import (
	"testing"

	"github.com/ringiflow/ringi/workflow/format"
)

func TestLayout(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"keys come in their usual order, and with their comments": {
			in:   "steps:\n  - activity: a   # who\n    # its name\n    id: x\n    effect: pure\nname: n\nringi: v1\n",
			want: "ringi: v1\nname: n\nsteps:\n  # its name\n  - id: x\n    activity: a  # who\n    effect: pure\n",
		},
		"blocks are indented by two, and lists under their key": {
			in:   "ringi: v1\nname: n\nsteps:\n- id: a\n  set:\n      x: 1\n      y:\n        - 1\n        -   two\n",
			want: "ringi: v1\nname: n\nsteps:\n  - id: a\n    set:\n      x: 1\n      y:\n        - 1\n        - two\n",
		},
		"what YAML would misread is quoted": {
			in:   "ringi: v1\nname: n\nsteps:\n  - id: a\n    when: !input.b\n    set: { x: ${ input.a }, y: no, z: 012 }\n  - id: b\n    set:\n      t: ${ input.c ? 'a' : \"b\" }\n      u: ${ 'order #1' }\n",
			want: "ringi: v1\nname: n\nsteps:\n  - id: a\n    when: \"!input.b\"\n    set: { x: \"${ input.a }\", y: \"no\", z: \"012\" }\n  - id: b\n    set:\n      t: '${ input.c ? ''a'' : \"b\" }'\n      u: \"${ 'order #1' }\"\n",
		},
		"quotes, single blank lines and blocks of text stay": {
			in:   "# head\n\nringi: v1\nname: \"n\"\n\n\ndescription: |\n    one\n      two\n\n    three\nsteps:\n  - id: a\n    set: {x: 'it''s', y: >-\n      no, }\n",
			want: "",
		},
		"a block of text moves with its key": {
			in:   "ringi: v1\nname: \"n\"\n\n\ndescription: |\n    one\n      # two\n\n    three\nsteps: [ { id: a, set: {x: 'it''s'} } ] # all\n# end\n",
			want: "ringi: v1\nname: \"n\"\n\ndescription: |\n  one\n    # two\n\n  three\nsteps: [ { id: a, set: { x: 'it''s' } } ]  # all\n# end\n",
		},
		"a block of text that keeps its blank lines gets no more of them": {
			in:   "ringi: v1\nname: n\ndescription: |+\n    one\n\n\n# two\n\nlabels: { a: b }\nsteps:\n- id: a\n  set:\n    x: |+\n\n    y: >+\n       z\n\n    # three\n",
			want: "ringi: v1\nname: n\ndescription: |+\n  one\n\n\n# two\n\nlabels: { a: b }\nsteps:\n  - id: a\n    set:\n      x: |2+\n\n      y: >+\n        z\n\n      # three\n",
		},
		"blanks beyond the margin of a block of text are text": {
			in:   "ringi: v1\nname: n\ndescription: |+\n    one\n      \n\n\nlabels:\n  a: |\n     one\n       \n  b: >-\n       two\n     \n         \n       three\n         \n\nsteps: []\n",
			want: "ringi: v1\nname: n\ndescription: |+\n  one\n    \n\n\nlabels:\n  a: |\n    one\n      \n\n  b: >-\n    two\n\n      \n    three\n      \n\nsteps: []\n",
		},
		"blanks alone are quoted": {
			in:   "ringi: v1\nname: n\ndescription: |2+\n    \n\nsteps: []\n",
			want: "ringi: v1\nname: n\ndescription: \"  \\n\\n\"\n\nsteps: []\n",
		},
		"a block of text whose header says how far it is indented": {
			in:   "ringi: v1\nname: n\ndescription: |1\n   one\n  \n    two\nsteps:\n  - id: a\n    set: \n        x: >4-\n                y\n            z\n",
			want: "ringi: v1\nname: n\ndescription: |2\n    one\n   \n     two\nsteps:\n  - id: a\n    set:\n      x: >2-\n            y\n        z\n",
		},
		"brackets that are too long become blocks": {
			in:   "ringi: v1\nname: n\nsteps:\n  - { id: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, emit: { type: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, aggregate: { type: ccccccccccccccccccccc, id: dddddddddd } } }\n",
			want: "ringi: v1\nname: n\nsteps:\n  - id: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n    emit: { type: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, aggregate: { type: ccccccccccccccccccccc, id: dddddddddd } }\n",
		},
		"a comment in brackets opens them": {
			in:   "ringi: v1\nname: n\nsteps:\n  - id: a\n    set: {\n      x: 1, # one\n      y: 2 }\n",
			want: "ringi: v1\nname: n\nsteps:\n  - id: a\n    set:\n      x: 1  # one\n      y: 2\n",
		},
		"a comment at the end of a block stays in it": {
			in:   "ringi: v1\nname: n\nsteps:\n  - id: a\n    wait: { for: 1h }\n    # later: more\n  # the next\n  - id: b\n    wait: { for: 1h }\n",
			want: "ringi: v1\nname: n\nsteps:\n  - id: a\n    wait: { for: 1h }\n    # later: more\n  # the next\n  - id: b\n    wait: { for: 1h }\n",
		},
		"anchors stay in front of what repeats them": {
			in:   "name: &n order\nringi: v1\nsteps: [ { id: a, set: { x: *n } } ]\n",
			want: "name: &n order\nringi: v1\nsteps: [ { id: a, set: { x: *n } } ]\n",
		},
		"JSON stays JSON": {
			in:   "{\"name\":\"n\",\n\"ringi\":\"v1\"}\n",
			want: "{\"name\":\"n\",\n\"ringi\":\"v1\"}\n",
		},
		"a byte order mark goes, a comment behind it stays": {
			in:   "\ufeff# one\n---\nringi: v1\nname: n # two\nsteps: []\n",
			want: "# one\nringi: v1\nname: n  # two\nsteps: []\n",
		},
		"files of windows lose their carriage returns": {
			in:   "ringi: v1\r\nname: n\r\nsteps: []\r\n",
			want: "ringi: v1\nname: n\nsteps: []\n",
		},
	} {
		got, problems := format.File("f.yaml", []byte(c.in))
		if c.want == "" { // not YAML: the file is refused with its place
			if len(problems) == 0 || got != nil {
				t.Errorf("%s: got\n%s", name, got)
			}
			continue
		}
		if string(got) != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s\n%v", name, got, c.want, problems)
		}
	}
}

func TestAFileThatCannotBeReadIsNotLaidOut(t *testing.T) {
	for src, want := range map[string]string{
		"ringi: v1\nname: n\nname: m\n":    "RG0014",
		"ringi: [v1\n":                     "RG0004",
		"ringi: v1\n---\nringi: v1\n":      "RG0015",
		"ringi: v1\n<<: { name: n }\n":     "RG0009",
		"- a\n":                            "RG0004",
		"":                                 "RG0004",
		"ringi: v1\nname: *nobody\n":       "RG0010",
		"ringi: v1\nname: \"a\x00b\"\n":    "RG0013",
		"ringi: v1\nname: a\n? [a]\n: 1\n": "RG0016",
	} {
		got, problems := format.File("f.yaml", []byte(src))
		if got != nil || len(problems) == 0 || problems[0].ID != want {
			t.Errorf("%q: got %q, %v, want %s", src, got, problems, want)
		}
	}
}

// Whatever the text is, the layout says the same or is refused.
func FuzzFile(f *testing.F) {
	for _, src := range []string{"ringi: v1\nsteps: [ { id: a } ] # x\n", "a: |\n  b\n # c\n", "- # a\n  - b\n", "a: 'b\n  c' # d\n", "? a\n: b\n", "a:\n- b\n-\n  c: d\n"} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 4096 {
			return
		}
		out, problems := format.File("f.yaml", src)
		if len(problems) > 0 {
			return
		}
		if again, problems := format.File("f.yaml", out); string(again) != string(out) {
			t.Errorf("a second time: %v\n%q\n%q\n%q", problems, src, out, again)
		}
	})
}
