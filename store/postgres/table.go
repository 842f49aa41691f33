package postgres

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ringiflow/ringi/store"
)

// A table is rows that go into one statement, as one array per column.
type table struct {
	columns []*column
	rows    int
}

// call is the statement over the rows. counted statements have the number of
// rows as their last argument.
func (t *table) call(text statement, counted bool) *call {
	c := &call{statement: text}
	c.list(t.columns...)
	if counted {
		c.int(int64(t.rows))
	}
	return c
}

// unnest writes the table expression over arrays: types and names are lists of
// the same length, as in "bigint uuid" and "tenant run".
func unnest(types, names string) string {
	list := strings.Fields(types)
	for i, t := range list {
		list[i] = fmt.Sprintf("$%d::%s[]", i+1, t)
	}
	return "unnest(" + strings.Join(list, ", ") + ") w(" + strings.Join(strings.Fields(names), ", ") + ")"
}

// inKeyOrder are indexes into writes in the order in which every batch takes
// the rows of a kind.
func inKeyOrder(writes []store.Write, which []int) []int {
	sorted := slices.Clone(which)
	slices.SortFunc(sorted, func(a, b int) int { return compareKeys(writes[a].Key, writes[b].Key) })
	return sorted
}

func compareKeys(a, b store.Key) int {
	if a.Tenant != b.Tenant {
		if a.Tenant < b.Tenant {
			return -1
		}
		return 1
	}
	return strings.Compare(string(a.Run), string(b.Run))
}

// replaced reports whether a later change of the list has the same key, so that
// this one has no effect.
func replaced[T any, K comparable](list []T, i int, key func(*T) K) bool {
	k := key(&list[i])
	for j := i + 1; j < len(list); j++ {
		if key(&list[j]) == k {
			return true
		}
	}
	return false
}

// encode writes a row as JSON; the error says which row cannot be.
func encode(what, name string, row any) ([]byte, error) {
	body, err := json.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("%w: %s %s: %w", errEncode, what, name, err)
	}
	return body, nil
}
