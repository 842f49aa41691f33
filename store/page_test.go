package store_test

import (
	"slices"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

func TestAWordIsNoCursor(t *testing.T) {
	for parts, list := range map[int][]string{1: {"a"}, 2: {"order", "7"}, 3: {"1", "r", "s"}} {
		if got, err := store.ParseCursor(store.Cursor(list...), parts); err != nil || !slices.Equal(got, list) {
			t.Errorf("the cursor of %q is read as %q, %v", list, got, err)
		}
		for _, word := range []string{"foo", "Zm9v", "Zm9vAGJhcg", "!", store.Cursor(append(list, "more")...)} {
			if got, err := store.ParseCursor(word, parts); ringi.ErrorCode(err) != ringi.CodeInvalid {
				t.Errorf("%q with %d parts is read as %q, %v", word, parts, got, err)
			}
		}
	}
}
