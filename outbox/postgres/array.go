package postgres

import (
	"strconv"
	"time"
)

// pgArray is an array as PostgreSQL reads it from a text, which every driver can
// pass, and in a quarter of the time that the same takes as JSON.
type pgArray []byte

// pgArrays makes room for several arrays of n elements of about so many bytes.
func pgArrays(count, n, bytes int) []pgArray {
	list := make([]pgArray, count)
	for i := range list {
		list[i] = make(pgArray, 0, n*bytes)
	}
	return list
}

func (a *pgArray) next() {
	if len(*a) == 0 {
		*a = append(*a, '{')
		return
	}
	*a = append(*a, ',')
}

// text adds a text.
func (a *pgArray) text(s string) {
	a.next()
	b := append(*a, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	*a = append(b, '"')
}

// plain adds what needs no quotes, such as an id.
func (a *pgArray) plain(s string) {
	a.next()
	*a = append(*a, s...)
}

// number adds a number.
func (a *pgArray) number(n int64) {
	a.next()
	*a = strconv.AppendInt(*a, n, 10)
}

// time adds a time, to the microsecond.
func (a *pgArray) time(at time.Time) {
	a.next()
	*a = at.UTC().AppendFormat(*a, "2006-01-02T15:04:05.000000Z")
}

// String is the array as a parameter.
func (a pgArray) String() string {
	if len(a) == 0 {
		return "{}"
	}
	return string(append(a, '}'))
}

// pgParams are arrays as the parameters of a statement.
func pgParams(list []pgArray) []any {
	params := make([]any, len(list))
	for i, a := range list {
		params[i] = a.String()
	}
	return params
}
