package expr

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/cockroachdb/apd/v3"

	"github.com/ringiflow/ringi/workflow/exact"
)

// A function is one function or operator of the language: how it may be
// called, what it answers, and how it is computed. All are pure.
type function struct {
	name   string
	params []Kind // KindAny takes everything
	result Kind
	eval   func(args []ref.Val) ref.Val // nil: CEL's library of optional values has it
}

// library returns the functions. One name may have several forms, which differ
// in the kinds of their parameters. Operators that take and give more than
// fixed kinds (== ?: && || in [] and the operators of times) are the checker's.
func library() []function {
	return slices.Concat(operatorsLibrary(), numbersLibrary(), textLibrary(), timeLibrary())
}

func operatorsLibrary() []function {
	n, s, t, d, l, b := KindNumber, KindString, KindTime, KindDuration, KindList, KindBool
	out := []function{
		{"!_", []Kind{b}, b, not},
		{"-_", []Kind{n}, n, negate},
		{"-_", []Kind{d}, d, negate},
		{"_%_", []Kind{n, n}, n, binary('%')},
		{"_*_", []Kind{n, n}, n, binary('*')},
		{"_/_", []Kind{n, n}, n, binary('/')},
		{"_-_", []Kind{n, n}, n, binary('-')},
		{"_-_", []Kind{t, t}, d, binary('-')},
		{"_-_", []Kind{t, d}, t, binary('-')},
		{"_-_", []Kind{d, d}, d, binary('-')},
		{"_+_", []Kind{n, n}, n, binary('+')},
		{"_+_", []Kind{s, s}, s, binary('+')},
		{"_+_", []Kind{l, l}, l, binary('+')},
		{"_+_", []Kind{t, d}, t, binary('+')},
		{"_+_", []Kind{d, t}, t, binary('+')},
		{"_+_", []Kind{d, d}, d, binary('+')},
	}
	for _, op := range [...]struct {
		name  string
		holds func(int) bool
	}{
		{operators.Less, func(c int) bool { return c < 0 }},
		{operators.LessEquals, func(c int) bool { return c <= 0 }},
		{operators.Greater, func(c int) bool { return c > 0 }},
		{operators.GreaterEquals, func(c int) bool { return c >= 0 }},
	} {
		for _, k := range []Kind{n, s, t, d} {
			out = append(out, function{op.name, []Kind{k, k}, b, compare(op.holds)})
		}
	}
	return out
}

func numbersLibrary() []function {
	n, s, l := KindNumber, KindString, KindList
	return []function{
		{"size", []Kind{s}, n, size},
		{"size", []Kind{l}, n, size},
		{"size", []Kind{KindObject}, n, size},
		{"num", []Kind{n}, n, toNumber},
		{"num", []Kind{s}, n, toNumber},
		{"sum", []Kind{l}, n, sum},
		{"min", []Kind{l}, n, extreme(-1)},
		{"min", []Kind{n, n}, n, extreme(-1)},
		{"max", []Kind{l}, n, extreme(1)},
		{"max", []Kind{n, n}, n, extreme(1)},
		{"first", []Kind{l}, KindOptional, nil},
		{"last", []Kind{l}, KindOptional, nil},
		{"abs", []Kind{n}, n, absolute},
		{"round", []Kind{n}, n, rounding(apd.RoundHalfUp)},
		{"round", []Kind{n, n}, n, rounding(apd.RoundHalfUp)},
		{"floor", []Kind{n}, n, rounding(apd.RoundFloor)},
		{"ceil", []Kind{n}, n, rounding(apd.RoundCeiling)},
	}
}

func textLibrary() []function {
	s, n, l, b := KindString, KindNumber, KindList, KindBool
	return []function{
		{"string", []Kind{s}, s, toText},
		{"string", []Kind{n}, s, toText},
		{"string", []Kind{b}, s, toText},
		{"string", []Kind{KindTime}, s, toText},
		{"string", []Kind{KindDuration}, s, toText},
		{"json", []Kind{KindAny}, s, toJSON},
		{"contains", []Kind{s, s}, b, texts(func(a []string) ref.Val { return types.Bool(strings.Contains(a[0], a[1])) })},
		{"startsWith", []Kind{s, s}, b, texts(func(a []string) ref.Val { return types.Bool(strings.HasPrefix(a[0], a[1])) })},
		{"endsWith", []Kind{s, s}, b, texts(func(a []string) ref.Val { return types.Bool(strings.HasSuffix(a[0], a[1])) })},
		{"matches", []Kind{s, s}, b, texts(matches)},
		{"lowerAscii", []Kind{s}, s, texts(func(a []string) ref.Val { return types.String(ascii(a[0], 'A', 'Z')) })},
		{"upperAscii", []Kind{s}, s, texts(func(a []string) ref.Val { return types.String(ascii(a[0], 'a', 'z')) })},
		{"trim", []Kind{s}, s, texts(func(a []string) ref.Val { return types.String(strings.TrimSpace(a[0])) })},
		{"replace", []Kind{s, s, s}, s, texts(replace)},
		{"split", []Kind{s, s}, l, texts(split)},
		{"join", []Kind{l}, s, joinTexts},
		{"join", []Kind{l, s}, s, joinTexts},
		{"url_escape", []Kind{s}, s, texts(func(a []string) ref.Val { return types.String(urlEscape(a[0])) })},
		{"sha256", []Kind{s}, s, texts(func(a []string) ref.Val {
			h := sha256.Sum256([]byte(a[0]))
			return types.String(hex.EncodeToString(h[:]))
		})},
	}
}

func timeLibrary() []function {
	n, s, t, d := KindNumber, KindString, KindTime, KindDuration
	field := func(name string, get func(time.Time) int) function {
		return function{name, []Kind{t}, n, func(args []ref.Val) ref.Val {
			at, ok := args[0].(types.Timestamp)
			if !ok {
				return mismatch(name, args)
			}
			return numOf(int64(get(at.Time.UTC())))
		}}
	}
	return []function{
		{"timestamp", []Kind{s}, t, toTime},
		{"timestamp", []Kind{t}, t, toTime},
		{"duration", []Kind{s}, d, toDuration},
		{"duration", []Kind{d}, d, toDuration},
		field("getFullYear", time.Time.Year),
		field("getMonth", func(t time.Time) int { return int(t.Month()) - 1 }),
		field("getDate", time.Time.Day),
		field("getDayOfWeek", func(t time.Time) int { return int(t.Weekday()) }),
		field("getHours", time.Time.Hour),
		field("getMinutes", time.Time.Minute),
		field("getSeconds", time.Time.Second),
		{"seconds", []Kind{d}, n, seconds},
	}
}

// mismatch is what a function answers when values of unknown type turn out to
// be of the wrong one.
func mismatch(name string, args []ref.Val) ref.Val {
	kinds := make([]string, len(args))
	for i, a := range args {
		kinds[i] = kindOf(a).Words()
	}
	return fail("%s cannot take %s", spoken(name), strings.Join(kinds, " and "))
}

// kindOf is the type of a value at run time, without its parts.
func kindOf(v ref.Val) *Type {
	switch v.(type) {
	case *numVal:
		return Number()
	case types.String:
		return Text()
	case types.Bool:
		return Bool()
	case types.Null:
		return &Type{Kind: KindNull}
	case types.Timestamp:
		return Time()
	case types.Duration:
		return &Type{Kind: KindDuration}
	case *types.Optional:
		return maybe(Any())
	case traits.Mapper:
		return Open()
	case traits.Lister:
		return List(Any())
	}
	return Any()
}

// spoken turns the internal name of an operator into what stands in the text.
func spoken(name string) string {
	if trimmed := strings.Trim(name, "_"); trimmed != "" && trimmed != name {
		return trimmed
	}
	if name == operators.In {
		return "in"
	}
	return name + "()"
}

func not(args []ref.Val) ref.Val {
	b, ok := args[0].(types.Bool)
	if !ok {
		return mismatch("!_", args)
	}
	return !b
}

func negate(args []ref.Val) ref.Val {
	switch x := args[0].(type) {
	case *numVal:
		out := newNum(&x.d)
		if !out.d.IsZero() {
			out.d.Negative = !out.d.Negative
		}
		return out
	case types.Duration:
		return x.Negate()
	}
	return mismatch("-_", args)
}

// binary is an arithmetic operator. Numbers are exact; text and lists can be
// added; times and durations follow CEL.
func binary(op byte) func([]ref.Val) ref.Val {
	name := "_" + string(op) + "_"
	return func(args []ref.Val) ref.Val {
		x, y := args[0], args[1]
		if a, ok := x.(*numVal); ok {
			b, ok := y.(*numVal)
			if !ok {
				return mismatch(name, args)
			}
			d, err := exact.Calculate(op, &a.d, &b.d)
			if err != nil {
				return fail("%s %c %s: %v", a.text(), op, b.text(), err)
			}
			return newNum(d)
		}
		if kindOf(x).Kind == kindOf(y).Kind || isTime(x) && isTime(y) {
			switch a := x.(type) {
			case traits.Adder:
				if op == '+' {
					return a.Add(y)
				}
			}
			if s, ok := x.(traits.Subtractor); ok && op == '-' {
				return s.Subtract(y)
			}
		}
		return mismatch(name, args)
	}
}

func isTime(v ref.Val) bool {
	k := kindOf(v).Kind
	return k == KindTime || k == KindDuration
}

func compare(holds func(int) bool) func([]ref.Val) ref.Val {
	return func(args []ref.Val) ref.Val {
		switch x := args[0].(type) {
		case *numVal:
			if y, ok := args[1].(*numVal); ok {
				return types.Bool(holds(x.d.Cmp(&y.d)))
			}
		case types.String, types.Timestamp, types.Duration:
			if c, ok := x.(traits.Comparer).Compare(args[1]).(types.Int); ok {
				return types.Bool(holds(int(c)))
			}
		}
		return fail("%s and %s cannot be compared", kindOf(args[0]).Words(), kindOf(args[1]).Words())
	}
}

func size(args []ref.Val) ref.Val {
	switch x := args[0].(type) {
	case types.String:
		return numOf(int64(utf8.RuneCountInString(string(x))))
	case traits.Sizer:
		return numOf(int64(x.Size().(types.Int)))
	}
	return mismatch("size", args)
}

func toNumber(args []ref.Val) ref.Val {
	switch x := args[0].(type) {
	case *numVal:
		return x
	case types.String:
		v, err := exact.Read(string(x))
		n, ok := v.(exact.Number)
		if err != nil || !ok {
			return fail("%q is not a number", exact.Shorten(string(x)))
		}
		return wrap(n, nil)
	}
	return mismatch("num", args)
}

// numbers reads the arguments, or the one list among them, as numbers.
func numbers(name string, args []ref.Val) ([]*numVal, ref.Val) {
	if l, ok := args[0].(traits.Lister); ok && len(args) == 1 {
		args = make([]ref.Val, 0, int(l.Size().(types.Int)))
		for i := range l.Size().(types.Int) {
			args = append(args, l.Get(i))
		}
	}
	out := make([]*numVal, len(args))
	for i, a := range args {
		n, ok := a.(*numVal)
		if !ok {
			return nil, fail("%s needs numbers, and found %s", spoken(name), kindOf(a).Words())
		}
		out[i] = n
	}
	return out, nil
}

func sum(args []ref.Val) ref.Val {
	list, bad := numbers("sum", args)
	if bad != nil {
		return bad
	}
	total := new(apd.Decimal)
	for _, n := range list {
		var err error
		if total, err = exact.Calculate('+', total, &n.d); err != nil {
			return fail("sum(): %v", err)
		}
	}
	return newNum(total)
}

// extreme is min (sign -1) or max (sign 1).
func extreme(sign int) func([]ref.Val) ref.Val {
	name := "min"
	if sign > 0 {
		name = "max"
	}
	return func(args []ref.Val) ref.Val {
		list, bad := numbers(name, args)
		if bad != nil {
			return bad
		}
		if len(list) == 0 {
			return fail("%s() of an empty list", name)
		}
		best := list[0]
		for _, n := range list[1:] {
			if n.d.Cmp(&best.d)*sign > 0 {
				best = n
			}
		}
		return best
	}
}

func absolute(args []ref.Val) ref.Val {
	n, ok := args[0].(*numVal)
	if !ok {
		return mismatch("abs", args)
	}
	out := newNum(&n.d)
	out.d.Negative = false
	return out
}

func rounding(mode apd.Rounder) func([]ref.Val) ref.Val {
	return func(args []ref.Val) ref.Val {
		list, bad := numbers("round", args)
		if bad != nil {
			return bad
		}
		places := int64(0)
		if len(list) == 2 {
			p, whole := list[1].index()
			if !whole || p > -exact.MinExponent || p < -exact.MaxExponent {
				return fail("cannot round to %s places", list[1].text())
			}
			places = p
		}
		d, err := exact.RoundTo(&list[0].d, int32(places), mode)
		if err != nil {
			return fail("round(): %v", err)
		}
		return newNum(d)
	}
}

func toText(args []ref.Val) ref.Val {
	switch args[0].(type) {
	case types.String, *numVal, types.Bool, types.Timestamp, types.Duration:
		s, err := textOf(args[0])
		if err != nil {
			return fail("%v", err)
		}
		return types.String(s)
	}
	return mismatch("string", args)
}

func toJSON(args []ref.Val) ref.Val {
	b, err := appendValue(nil, args[0])
	if err != nil {
		return fail("json(): %v", err)
	}
	return types.String(b)
}

// texts is a function of texts alone.
func texts(f func([]string) ref.Val) func([]ref.Val) ref.Val {
	return func(args []ref.Val) ref.Val {
		list := make([]string, len(args))
		for i, a := range args {
			s, ok := a.(types.String)
			if !ok {
				return fail("expected text, and found %s", kindOf(a).Words())
			}
			list[i] = string(s)
		}
		return f(list)
	}
}

// maxMatching bounds the work of one match: instructions of the pattern times
// bytes of the text, about 20 ms at worst. The cost limit alone would come too
// late, since a call is charged when it has ended.
const maxMatching = 1 << 20

func matches(a []string) ref.Val {
	size, err := patternSize(a[1])
	if err != nil {
		return fail("%v", err)
	}
	if size*(len(a[0])+1) > maxMatching {
		return fail("matches() has too much to do with a text of %d bytes and this pattern; let an activity do it", len(a[0]))
	}
	re, err := regexp.Compile(a[1])
	if err != nil {
		return fail("%q is not a pattern: %v", exact.Shorten(a[1]), err)
	}
	return types.Bool(re.MatchString(a[0]))
}

// maxPattern is the longest pattern, in bytes: a short one can already ask for
// a large program, with x{1000}.
const maxPattern = 256

// patternSize is the number of instructions of a pattern.
func patternSize(pattern string) (int, error) {
	if len(pattern) > maxPattern {
		return 0, fmt.Errorf("a pattern has at most %d bytes", maxPattern)
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("%q is not a pattern: %w", pattern, err)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, fmt.Errorf("%q is not a pattern: %w", pattern, err)
	}
	return len(prog.Inst), nil
}

// ascii turns the letters from first to last into the other case.
func ascii(s string, first, last byte) string {
	b := []byte(s)
	for i, c := range b {
		if c >= first && c <= last {
			b[i] = c ^ 0x20
		}
	}
	return string(b)
}

// maxText bounds what replace and join may build, 1 MiB: more than any payload
// may hold, and less than a small expression could otherwise ask for.
const maxText = 1 << 20

func replace(a []string) ref.Val {
	if n := strings.Count(a[0], a[1]); n*len(a[2])+len(a[0]) > maxText {
		return fail("replace() would make a text above 1 MiB")
	}
	return types.String(strings.ReplaceAll(a[0], a[1], a[2]))
}

func split(a []string) ref.Val {
	parts := strings.Split(a[0], a[1])
	out := make([]any, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return &listVal{elems: out}
}

func joinTexts(args []ref.Val) ref.Val {
	l, ok := args[0].(traits.Lister)
	if !ok {
		return mismatch("join", args)
	}
	var separator types.String
	if len(args) == 2 {
		if separator, ok = args[1].(types.String); !ok {
			return mismatch("join", args)
		}
	}
	var b strings.Builder
	for i := range l.Size().(types.Int) {
		s, ok := l.Get(i).(types.String)
		if !ok {
			return fail("Join() needs a list of text, and found %s", kindOf(l.Get(i)).Words())
		}
		if i > 0 {
			b.WriteString(string(separator))
		}
		if b.WriteString(string(s)); b.Len() > maxText {
			return fail("Join() would make a text above 1 MiB")
		}
	}
	return types.String(b.String())
}

// urlEscape escapes all but the unreserved characters of RFC 3986, so that the
// result may stand anywhere in a URL.
func urlEscape(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

func toTime(args []ref.Val) ref.Val {
	switch x := args[0].(type) {
	case types.Timestamp:
		return x
	case types.String:
		t, err := time.Parse(time.RFC3339Nano, string(x))
		if err != nil || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
			return fail("%q is not an instant such as 2026-01-31T09:00:00Z", exact.Shorten(string(x)))
		}
		return types.Timestamp{Time: t.UTC()}
	}
	return mismatch("timestamp", args)
}

func toDuration(args []ref.Val) ref.Val {
	switch x := args[0].(type) {
	case types.Duration:
		return x
	case types.String:
		d, err := time.ParseDuration(string(x))
		if err != nil {
			return fail("%q is not a duration such as 36h or 90s", exact.Shorten(string(x)))
		}
		return types.Duration{Duration: d}
	}
	return mismatch("duration", args)
}

func seconds(args []ref.Val) ref.Val {
	d, ok := args[0].(types.Duration)
	if !ok {
		return mismatch("seconds", args)
	}
	return newNum(apd.New(int64(d.Duration), -9))
}
