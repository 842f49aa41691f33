package access_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/access"
	"github.com/ringiflow/ringi/api"
)

func sum(key string) string {
	s := sha256.Sum256([]byte(key))
	return hex.EncodeToString(s[:])
}

func TestAKeyIsFoundByItselfAlone(t *testing.T) {
	ring, err := access.Parse("keys", []byte("# people\n\nalice person finance,board decide,read "+sum("a")+"\nshop machine - start "+sum("b")+"\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	alice, ok := ring.Find("a")
	if !ok || alice.ID != "alice" || alice.Kind != ringi.Person || !slices.Equal(alice.Groups, []string{"finance", "board"}) || !slices.Equal(alice.Scopes, []string{"decide", "read"}) || alice.Tenant != ringi.DefaultTenant {
		t.Errorf("a is %+v", alice)
	}
	if got := alice.Actor(); got.ID != "alice" || got.Kind != ringi.Person || !got.In("board") {
		t.Errorf("actor %+v", got)
	}
	shop, ok := ring.Find("b")
	if !ok || shop.Kind != ringi.Machine || len(shop.Groups) != 0 {
		t.Errorf("b is %+v", shop)
	}
	for _, key := range []string{"", "c", "a ", "A", sum("a"), "alice"} { // H-11: the hash is no key
		if p, ok := ring.Find(key); ok {
			t.Errorf("%q is %+v", key, p)
		}
	}
	if ring.Len() != 2 {
		t.Errorf("%d keys", ring.Len())
	}
}

func TestANewKeyIsFoundInTheFileThatHoldsItsLine(t *testing.T) {
	p := access.Principal{ID: "alice", Kind: ringi.Person, Groups: []string{"finance"}, Scopes: []string{"read", "decide"}}
	key, line, err := access.NewKey(p)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(key, "rg_") || len(key) != len("rg_")+43 || strings.Contains(line, key) {
		t.Errorf("key %q, line %q", key, line)
	}
	ring, err := access.Parse("keys", []byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := ring.Find(key); !ok || got.ID != "alice" || !slices.Equal(got.Scopes, p.Scopes) {
		t.Errorf("found %+v", got)
	}
	again, _, err := access.NewKey(p)
	if err != nil || again == key {
		t.Errorf("two keys are alike: %v", err)
	}
	for name, wrong := range map[string]access.Principal{
		"no name":          {Kind: ringi.Person},
		"a name of two":    {ID: "alice b", Kind: ringi.Person},
		"a line's comment": {ID: "#alice", Kind: ringi.Person},
		"the engine":       {ID: "x", Kind: ringi.System},
		"a group's comma":  {ID: "x", Kind: ringi.Person, Groups: []string{"a,b"}},
		"an unknown scope": {ID: "x", Kind: ringi.Person, Scopes: []string{"root"}},
	} {
		if _, _, err := access.NewKey(wrong); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestAWrongLineIsNamed(t *testing.T) {
	good := "bob person - read " + sum("b")
	for _, c := range []struct{ line, says string }{
		{"alice person read " + sum("a"), "4 fields"},
		{"alice human - read " + sum("a"), `"human"`},
		{"alice system - read " + sum("a"), `"system"`},
		{"alice person - reed " + sum("a"), `no scope "reed"`},
		{"alice person - read,read " + sum("a"), "twice"},
		{"alice person x,,y read " + sum("a"), "group"},
		{"alice person - read rg_secret", "SHA-256"},
		{"alice person - read " + sum("a")[2:], "SHA-256"},
		{"a\x00b person - read " + sum("a"), "characters"},
		{strings.Repeat("a", 257) + " person - read " + sum("a"), "257 bytes"},
		{"alice person - read " + sum("b"), "twice"},
		{"bob machine - read " + sum("a"), "two names"},
	} {
		_, err := access.Parse("keys", []byte(good+"\n"+c.line+"\n"))
		var at *access.LineError
		if !errors.As(err, &at) || at.Line != 2 || !strings.HasPrefix(err.Error(), "keys:2: ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.line, err, c.says)
		}
	}
	if _, err := access.Parse("keys", []byte(good+"\nbob person - read "+sum("new")+"\n")); err != nil {
		t.Errorf("a key that replaces another: %v", err)
	}
}

func TestTheScopesAreThoseOfTheRoutes(t *testing.T) {
	if got := access.Scopes(); !slices.Equal(got, api.Scopes()) {
		t.Errorf("keys have %v, routes %v", got, api.Scopes())
	}
}

func FuzzParse(f *testing.F) {
	f.Add("# people\nalice person finance read " + sum("a"))
	f.Add("shop machine - - " + sum("b") + "\n\n")
	f.Add("a b c")
	f.Fuzz(func(t *testing.T, text string) {
		ring, err := access.Parse("keys", []byte(text))
		if (ring == nil) == (err == nil) {
			t.Fatalf("ring %v, error %v", ring, err)
		}
		if ring != nil && ring.Len() > strings.Count(text, "\n")+1 {
			t.Errorf("%d keys in %q", ring.Len(), text)
		}
	})
}
