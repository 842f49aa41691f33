package exact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/workflow/exact"
)

// W2: a version is told by its digest, so equal documents must have one form.
func TestCanonicalForm(t *testing.T) {
	for _, test := range []struct{ name, doc, want string }{
		{"white space goes", " { \"a\" : [ 1 , 2 ] }\n", `{"a":[1,2]}`},
		{"keys are ordered", `{"b":1,"a":2,"":3}`, `{"":3,"a":2,"b":1}`},
		{
			"keys are ordered by UTF-16", `{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3,"\r":4,"1":5,"\u0080":6,"ö":7}`,
			"{\"\\r\":4,\"1\":5,\"\u0080\":6,\"ö\":7,\"€\":3,\"😀\":2,\"\ufb33\":1}",
		},
		{"only what must be escaped is", `"\u0041\/\u000f\n\"\\é\u2028"`, "\"A/\\u000f\\n\\\"\\\\é\u2028\""},
		{"surrogates become one character", `"\ud83d\ude00"`, `"😀"`},
		{"exponents go", `[1e3,1.5E+2,25e-1,1e-7]`, `[1000,150,2.5,0.0000001]`},
		{"trailing zeros go", `[0.10,1.0,100,0.0]`, `[0.1,1,100,0]`},
		{"minus zero goes", `[-0,-0.0,0e5,-0e-5]`, `[0,0,0,0]`},
		{"integers stay exact", `[9007199254740993,-9007199254740993]`, `[9007199254740993,-9007199254740993]`},
		{"34 digits stay", `1234567890123456789012345678901234`, `1234567890123456789012345678901234`},
		{"zeros are no digits", `1e40`, "1" + strings.Repeat("0", 40)},
		{"literals", `[true,false,null]`, `[true,false,null]`},
		{"empty", `[{},[],""]`, `[{},[],""]`},
	} {
		got, err := exact.Canonical([]byte(test.doc))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		} else if string(got) != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// W2
func TestDigestTellsValuesApartAndForgetsTheirSpelling(t *testing.T) {
	digest := func(doc string) string {
		t.Helper()
		d, err := exact.Digest([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		if len(d) != 64 {
			t.Fatalf("digest %q has not 64 digits", d)
		}
		return d
	}
	if digest(`{"a":0.10,"b":1}`) != digest(` {"b":1.0, "a":1e-1}`) {
		t.Error("0.10 and 0.1 are one number, and the order of keys says nothing")
	}
	if digest(`9007199254740993`) == digest(`9007199254740992`) {
		t.Error("9007199254740993 and 9007199254740992 are two numbers")
	}
	if digest(`"1"`) == digest(`1`) {
		t.Error("a text is no number")
	}
	// SHA-256 of {"a":1}, computed elsewhere.
	if got, want := digest(`{"a":1}`), "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// W3: what has no single reading, or cannot be kept, does not come in.
func TestDocumentsThatAreRefused(t *testing.T) {
	for _, test := range []struct{ name, doc, want string }{
		{"nothing", ``, "ends too early"},
		{"two values", `1 2`, "more text after the end"},
		{"repeated key", `{"a":1,"b":2,"a":3}`, `key "a" stands twice`},
		{"repeated key in two spellings", `{"a":1,"\u0061":3}`, `key "a" stands twice`},
		{"invalid UTF-8", "\"a\xff\"", "invalid UTF-8"},
		{"invalid UTF-8 in a key", "{\"\xc0\x80\":1}", "invalid UTF-8"},
		{"raw NUL", "\"\x00\"", "control character"},
		{"escaped NUL", `"\u0000"`, "NUL"},
		{"lone high surrogate", `"\ud83d"`, "surrogate"},
		{"lone low surrogate", `"\ude00"`, "surrogate"},
		{"two high surrogates", `"\ud83d\ud83d"`, "surrogate"},
		{"raw line break in a text", "\"a\nb\"", "control character"},
		{"unknown escape", `"\x"`, "unknown escape"},
		{"half an escape", `"\u12"`, "four hexadecimal digits"},
		{"text without end", `"abc`, "no end"},
		{"list without end", `[1`, "comma"},
		{"trailing comma", `[1,]`, "expected a value"},
		{"key without quotes", `{a:1}`, "key in quotes"},
		{"key without colon", `{"a" 1}`, "colon"},
		{"leading zero", `01`, "more text"},
		{"bare point", `1.`, "digit after the point"},
		{"bare exponent", `1e`, "digit in the exponent"},
		{"plus", `+1`, "expected a value"},
		{"minus alone", `-`, "expected a digit"},
		{"not a number", `NaN`, "expected a value"},
		{"35 digits", `12345678901234567890123456789012345`, "34 digits"},
		{"35 digits around the point", `1234567890123456789012345678901234.5`, "34 digits"},
		{"huge exponent", `1e999999999`, "outside"},
		{"huge exponent of many digits", `1e99999999999999999999999999`, "outside"},
		{"tiny exponent", `1e-999999999`, "outside"},
		{"nested too deep", strings.Repeat("[", 65) + strings.Repeat("]", 65), "deeper than 64"},
		{"nested far too deep", strings.Repeat(`{"a":`, 1<<20), "deeper than 64"},
	} {
		got, err := exact.Canonical([]byte(test.doc))
		if err == nil {
			t.Errorf("%s: got %s, want a refusal", test.name, got)
		} else if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %q does not say %q", test.name, err, test.want)
		}
		if _, err := exact.Digest([]byte(test.doc)); err == nil {
			t.Errorf("%s: has a digest", test.name)
		}
	}
}

func TestZeroWithAHugeExponentIsZero(t *testing.T) {
	got, err := exact.Canonical([]byte(`[0e99999999999999999999,-0e-99999999999999999999]`))
	if err != nil || string(got) != `[0,0]` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestNestingOf64IsAllowed(t *testing.T) {
	doc := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	if got, err := exact.Canonical([]byte(doc)); err != nil || string(got) != doc {
		t.Errorf("got %.40s, %v", got, err)
	}
}

func TestGetFindsMembersByName(t *testing.T) {
	v, err := exact.Read(`{"b":1,"a":null,"😀":2,"\uff5e":3}`)
	if err != nil {
		t.Fatal(err)
	}
	o := v.(*exact.Object)
	for name, want := range map[string]any{"a": nil, "b": exact.Number("1"), "😀": exact.Number("2"), "\uff5e": exact.Number("3")} {
		if got, found := o.Get(name); !found || got != want {
			t.Errorf("%q: got %v, %v", name, got, found)
		}
	}
	if _, found := o.Get("c"); found {
		t.Error("found what is not there")
	}
}

func FuzzCanonical(f *testing.F) {
	for _, doc := range []string{
		`{"b":[1e2,0.10,-0],"a":{"":null}}`, `"\ud83d\ude00é\u2028"`, `[9007199254740993,1e308,1e-324]`, `1e999999999`, `{"a":1,"\u0061":2}`,
		"\"\xff\"", `[[[[]]]]`, ` true `, `1234567890123456789012345678901234.0000`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		once, err := exact.Canonical(doc)
		if err != nil {
			return
		}
		if !json.Valid(doc) {
			t.Fatalf("accepted %q, which is not JSON", doc)
		}
		if !json.Valid(once) {
			t.Fatalf("%q became %q, which is not JSON", doc, once)
		}
		twice, err := exact.Canonical(once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("%q became %q and then %q, %v", doc, once, twice, err)
		}
		// The same value in another spelling has the same digest.
		var compact json.RawMessage = doc
		spaced, err := json.MarshalIndent(compact, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		first, _ := exact.Digest(doc)
		if second, err := exact.Digest(spaced); err != nil || first != second {
			t.Fatalf("%q and %q have digests %s and %s, %v", doc, spaced, first, second, err)
		}
	})
}
