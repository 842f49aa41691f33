package exact_test

import (
	"strings"
	"testing"

	"github.com/ringiflow/ringi/workflow/exact"
)

func TestMemberFindsWithoutReadingTheRest(t *testing.T) {
	for _, test := range []struct {
		doc, name, want string // "" is not found
	}{
		{`{"a":1,"b":[{"a":2}]}`, "a", `1`},
		{` { "x" : "}\"" , "a" : [ "]" , { "b" : 1 } ] } `, "a", `[ "]" , { "b" : 1 } ]`},
		{`{"x":{"a":1}}`, "a", ""},
		{`{"x":"\"a\":1"}`, "a", ""},
		{`{"\u0061":true}`, "a", `true`},
		{`{"a\\":null}`, `a\`, `null`},
		{`{}`, "a", ""},
		{`[{"a":1}]`, "a", ""},
		{`"a"`, "a", ""},
	} {
		got, found, err := exact.Member(test.doc, test.name)
		if err != nil || got != test.want || found != (test.want != "") {
			t.Errorf("%s of %s: got %q, %v, %v", test.name, test.doc, got, found, err)
		}
	}
	for _, doc := range []string{`{"b`, `{"b"`, `{"b":`, `{"b":"x`, `{"b":[1`, `{"b":1`} {
		if _, found, err := exact.Member(doc, "a"); found || err == nil {
			t.Errorf("%s: found %v, %v", doc, found, err)
		}
	}
}

func FuzzMember(f *testing.F) {
	f.Add(`{"a":1,"b":{"a":[1,"}",{}]},"\u00e9":"\\\""}`)
	f.Add(` { "a" : -1.5e3 , "b" : null } `)
	f.Fuzz(func(t *testing.T, doc string) {
		v, err := exact.Read(doc)
		if err != nil {
			_, _, _ = exact.Member(doc, "a") // must not panic
			return
		}
		o, ok := v.(*exact.Object)
		if !ok {
			return
		}
		for i, key := range o.Keys {
			text, found, err := exact.Member(doc, key)
			if err != nil || !found {
				t.Fatalf("%q of %q: %v, %v", key, doc, found, err)
			}
			part, err := exact.Read(text)
			if err != nil || string(exact.Append(nil, part)) != string(exact.Append(nil, o.Vals[i])) {
				t.Fatalf("%q of %q: got %q, %v", key, doc, text, err)
			}
		}
		if _, found, err := exact.Member(doc, strings.Join(o.Keys, "")+"!"); found || err != nil {
			t.Fatalf("found what is not there in %q: %v", doc, err)
		}
	})
}
