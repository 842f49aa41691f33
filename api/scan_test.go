package api

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// probe is a shape with all that a place can be.
func probe() *shape {
	item := &shape{fields: map[string]*shape{"run": {}, "token": {whole: true}, "output": {free: true, lax: true}}}
	return &shape{fields: map[string]*shape{
		"name": {}, "n": {whole: true}, "input": {free: true}, "list": {items: &shape{}}, "items": {items: item, each: true},
	}}
}

// FuzzScan holds the scanner against the decoder of the standard library: they
// agree on what JSON is, a text without fault is decoded as it was written, and
// the items that are refused by themselves lie where the scanner says.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","n":7,"input":{"a":[1,2.5e-3,true,null]},"list":["x","y"]}`,
		`{"items":[{"run":"r","token":1,"output":1e400}, {"run":"\ud800"} ,7]}`,
		`{"name":"\ud83d\ude00\\ud800","name":"` + "\xe9" + `"}`,
		`[[[]]]`, `"\u0000"`, `-0.0e+1`, `{"n":01}`, strings.Repeat(`{"input":`, 50), ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := scanner{text: text}
		value, err := s.scan(probe())
		if deep := err != nil && strings.Contains(err.Error(), "deep"); !deep && (err == nil) != json.Valid(text) {
			t.Fatalf("%q: %v, the decoder says %v", text, err, json.Valid(text))
		}
		if err != nil || len(s.faults) > 0 {
			return
		}
		var got struct {
			Name string `json:"name"`
		}
		if object, ok := value.(map[string]any); ok {
			if name, ok := object["name"].(string); ok && (json.Unmarshal(text, &got) != nil && got.Name == "" || got.Name != name || !utf8.ValidString(name) || strings.IndexByte(name, 0) >= 0) {
				t.Errorf("%q: the name is %q, the decoder reads %q", text, name, got.Name)
			}
		}
		for _, l := range s.lists {
			for _, item := range l.items {
				if !json.Valid(text[item.from:item.to]) {
					t.Errorf("%q: an item is said to be %q", text, text[item.from:item.to])
				}
			}
		}
	})
}
