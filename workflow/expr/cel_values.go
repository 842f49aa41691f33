package expr

import (
	"fmt"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/cockroachdb/apd/v3"

	"github.com/ringiflow/ringi/workflow/exact"
)

// The values that expressions compute with. CEL's own int, uint and double never
// appear: every number is an exact decimal. Text, booleans, null, times and
// durations are CEL's; lists and objects are views of the document, wrapped
// element by element as they are asked for.

// inert lends the methods of the value interface that the evaluator never calls
// on our values (conversion to Go types by reflection), so that the values
// below state only what they do.
type inert struct{ types.Null }

// numVal is a number.
type numVal struct {
	inert
	d apd.Decimal
}

func newNum(d *apd.Decimal) *numVal {
	n := new(numVal)
	n.d.Set(d)
	return n
}

func numOf(i int64) *numVal { return newNum(apd.New(i, 0)) }

func (n *numVal) Type() ref.Type { return numberType{} }
func (n *numVal) Value() any     { return n.text() }

func (n *numVal) Equal(other ref.Val) ref.Val {
	o, ok := other.(*numVal)
	return types.Bool(ok && n.d.Cmp(&o.d) == 0)
}

func (n *numVal) ConvertToType(ref.Type) ref.Val { return fail("a number cannot be converted") }
func (n *numVal) IsZeroValue() bool              { return n.d.IsZero() }

// text is the canonical form; every numVal has one, since calculate keeps to the bounds.
func (n *numVal) text() exact.Number {
	out, err := exact.NumberOf(&n.d)
	if err != nil {
		return exact.Number(n.d.Text('f'))
	}
	return out
}

// index is the number as a position in a list.
func (n *numVal) index() (int64, bool) {
	var whole apd.Decimal
	whole.Reduce(&n.d)
	i, err := whole.Int64()
	return i, err == nil
}

// A namedType names the type of a value to the evaluator.
type (
	numberType struct{}
	listType   struct{}
	objectType struct{}
)

func (numberType) HasTrait(int) bool { return false }
func (numberType) TypeName() string  { return "num" }
func (listType) HasTrait(t int) bool { return types.ListType.HasTrait(t) }
func (listType) TypeName() string    { return "list" }
func (objectType) HasTrait(t int) bool {
	return types.MapType.HasTrait(t)
}
func (objectType) TypeName() string { return "map" }

// wrap makes a value of a document's node. t is what is known of its type; it
// may be nil. It decides only which null members count as absent.
func wrap(node any, t *Type) ref.Val {
	switch x := node.(type) {
	case nil:
		return types.NullValue
	case bool:
		return types.Bool(x)
	case string:
		return types.String(x)
	case exact.Number:
		d, err := x.Decimal()
		if err != nil {
			return fail("%v", err)
		}
		return newNum(d)
	case []any:
		return &listVal{elems: x, of: elementTyp(t)}
	case *exact.Object:
		return &objectVal{o: x, t: t}
	case ref.Val:
		return x
	case time.Time:
		return types.Timestamp{Time: x}
	}
	return fail("unexpected %T", node)
}

func elementTyp(t *Type) *Type {
	if t == nil || t.Kind != KindList {
		return nil
	}
	return t.of
}

// fail is an error as a value; it ends the evaluation unless && or || absorb it.
func fail(format string, args ...any) ref.Val { return types.NewErr(format, args...) }

// adapter turns what the evaluator makes (list literals) into our values.
type adapter struct{}

func (a adapter) NativeToValue(v any) ref.Val {
	switch x := v.(type) {
	case ref.Val:
		return x
	case []ref.Val:
		return types.NewRefValList(a, x)
	case nil, bool, string, exact.Number, []any, *exact.Object, time.Time:
		return wrap(x, nil)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// objectFunction makes an object; the checker puts it in the place of a map
// literal, because CEL's own maps have no order. Its one argument is a list of
// key, value and whether the value may be missing, for each member in turn.
const objectFunction = "@object"

func makeObject(args []ref.Val) ref.Val {
	l := args[0].(traits.Lister)
	o := &exact.Object{}
	for i := types.Int(0); i < l.Size().(types.Int); i += 3 {
		key, ok := l.Get(i).(types.String)
		if !ok {
			return fail("the keys of an object are text")
		}
		v := l.Get(i + 1)
		if l.Get(i+2) == types.True {
			optional, ok := v.(*types.Optional)
			if !ok {
				return fail("the value of key ?%q is always there", string(key))
			}
			if !optional.HasValue() {
				continue
			}
			v = optional.GetValue()
		}
		o.Keys, o.Vals = append(o.Keys, string(key)), append(o.Vals, v)
	}
	o.Sort()
	for i := 1; i < len(o.Keys); i++ {
		if o.Keys[i] == o.Keys[i-1] {
			return fail("key %q stands twice in one object", o.Keys[i])
		}
	}
	return &objectVal{o: o, literal: true}
}

// listVal is a JSON array.
type listVal struct {
	inert
	elems []any
	of    *Type
}

func (l *listVal) Type() ref.Type                 { return listType{} }
func (l *listVal) Value() any                     { return l.elems }
func (l *listVal) ConvertToType(ref.Type) ref.Val { return fail("a list cannot be converted") }
func (l *listVal) IsZeroValue() bool              { return len(l.elems) == 0 }
func (l *listVal) Size() ref.Val                  { return types.Int(len(l.elems)) }
func (l *listVal) Iterator() traits.Iterator      { return &iterator{n: len(l.elems), at: l.at} }
func (l *listVal) at(i int) ref.Val               { return wrap(l.elems[i], l.of) }

func (l *listVal) Get(index ref.Val) ref.Val {
	i, ok := index.(types.Int)
	if !ok || i < 0 || int(i) >= len(l.elems) {
		return fail("a list of %d has no element %v", len(l.elems), index.Value())
	}
	return l.at(int(i))
}

func (l *listVal) Contains(v ref.Val) ref.Val {
	for i := range l.elems {
		if types.Equal(l.at(i), v) == types.True {
			return types.True
		}
	}
	return types.False
}

func (l *listVal) Equal(other ref.Val) ref.Val { return equalLists(l, other) }

func (l *listVal) Add(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return fail("only a list can be added to a list")
	}
	return concat(l, o)
}

// concat copies both lists into one.
func concat(a, b traits.Lister) ref.Val {
	n, m := int(a.Size().(types.Int)), int(b.Size().(types.Int))
	out := make([]ref.Val, 0, n+m)
	for i := range n {
		out = append(out, a.Get(types.Int(i)))
	}
	for i := range m {
		out = append(out, b.Get(types.Int(i)))
	}
	return types.NewRefValList(adapter{}, out)
}

func equalLists(a traits.Lister, other ref.Val) ref.Val {
	b, ok := other.(traits.Lister)
	if !ok || a.Size() != b.Size() {
		return types.False
	}
	for i := range a.Size().(types.Int) {
		if types.Equal(a.Get(i), b.Get(i)) != types.True {
			return types.False
		}
	}
	return types.True
}

// iterator walks n values in order.
type iterator struct {
	inert
	n, next int
	at      func(int) ref.Val
}

func (it *iterator) HasNext() ref.Val { return types.Bool(it.next < it.n) }

func (it *iterator) Next() ref.Val {
	if it.next >= it.n {
		return nil
	}
	it.next++
	return it.at(it.next - 1)
}

// objectVal is a JSON object, or what a map literal made; then its members are values.
type objectVal struct {
	inert
	o       *exact.Object
	t       *Type // what is known of it; may be nil
	literal bool  // made by a map literal: the members are values, not nodes
}

func (o *objectVal) Type() ref.Type                 { return objectType{} }
func (o *objectVal) Value() any                     { return o.o }
func (o *objectVal) ConvertToType(ref.Type) ref.Val { return fail("an object cannot be converted") }
func (o *objectVal) IsZeroValue() bool              { return len(o.o.Keys) == 0 }
func (o *objectVal) Size() ref.Val                  { return types.Int(len(o.o.Keys)) }
func (o *objectVal) Equal(other ref.Val) ref.Val    { return equalMaps(o, other) }
func (o *objectVal) names() []string                { return o.o.Keys }

func (o *objectVal) Iterator() traits.Iterator {
	return &iterator{n: len(o.o.Keys), at: func(i int) ref.Val { return types.String(o.o.Keys[i]) }}
}

// Find looks a member up. The null of a declared member counts as absent, so
// that .? and orValue cover both ways to leave something out.
func (o *objectVal) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return fail("the keys of an object are text"), false
	}
	v, found := o.o.Get(string(name))
	if !found {
		return nil, false
	}
	return o.t.member(v, string(name))
}

// member makes a value of a member, or says that it counts as absent.
func (t *Type) member(node any, name string) (ref.Val, bool) {
	if t == nil || t.Kind != KindObject {
		return wrap(node, nil), true
	}
	f, declared := t.fields[name]
	if declared && node == nil {
		return nil, false
	}
	return wrap(node, f.typ), true
}

func (o *objectVal) Get(key ref.Val) ref.Val      { return getFrom(o, key) }
func (o *objectVal) Contains(key ref.Val) ref.Val { return containedIn(o, key) }

func getFrom(m traits.Mapper, key ref.Val) ref.Val {
	if v, found := m.Find(key); found {
		return v
	} else if v != nil {
		return v
	}
	return fail("there is no field %q", fmt.Sprint(key.Value()))
}

func containedIn(m traits.Mapper, key ref.Val) ref.Val {
	v, found := m.Find(key)
	if types.IsError(v) {
		return v
	}
	return types.Bool(found)
}

// documentVal is a document that is an object. It reads only the members that
// are asked for; an order of two hundred items is not read for its id.
type documentVal struct {
	inert
	text string
	t    *Type
	read []readMember // few: an expression names few members
	full ref.Val      // all of it, when that was needed
}

type readMember struct {
	name  string
	v     ref.Val
	found bool
}

func (d *documentVal) Type() ref.Type                 { return objectType{} }
func (d *documentVal) Value() any                     { return d.text }
func (d *documentVal) ConvertToType(ref.Type) ref.Val { return fail("an object cannot be converted") }
func (d *documentVal) IsZeroValue() bool              { return len(d.names()) == 0 }
func (d *documentVal) Size() ref.Val                  { return types.Int(len(d.names())) }
func (d *documentVal) Equal(other ref.Val) ref.Val    { return equalMaps(d, other) }
func (d *documentVal) Get(key ref.Val) ref.Val        { return getFrom(d, key) }
func (d *documentVal) Contains(key ref.Val) ref.Val   { return containedIn(d, key) }

func (d *documentVal) Iterator() traits.Iterator {
	names := d.names()
	return &iterator{n: len(names), at: func(i int) ref.Val { return types.String(names[i]) }}
}

// whole reads all of the document; it is an error value if that fails.
func (d *documentVal) whole() ref.Val {
	if d.full == nil {
		v, err := exact.Read(d.text)
		if err != nil {
			d.full = fail("%v", err)
		} else {
			d.full = wrap(v, d.t)
		}
	}
	return d.full
}

func (d *documentVal) names() []string {
	if o, ok := d.whole().(*objectVal); ok {
		return o.o.Keys
	}
	return nil
}

func (d *documentVal) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return fail("the keys of an object are text"), false
	}
	for i := range d.read {
		if d.read[i].name == string(name) {
			return d.read[i].v, d.read[i].found
		}
	}
	m := readMember{name: string(name)}
	m.v, m.found = d.member(m.name)
	d.read = append(d.read, m)
	return m.v, m.found
}

func (d *documentVal) member(name string) (ref.Val, bool) {
	text, found, err := exact.Member(d.text, name)
	if err == nil && !found {
		return nil, false
	}
	var node any
	if err == nil {
		node, err = exact.Read(text)
	}
	if err != nil {
		return fail("%v", err), true
	}
	return d.t.member(node, name)
}

// A namer is an object whose names are known in order.
type namer interface {
	traits.Mapper
	names() []string
}

func equalMaps(a namer, other ref.Val) ref.Val {
	b, ok := other.(namer)
	if !ok || a.Size() != b.Size() {
		return types.False
	}
	for _, name := range a.names() {
		x, _ := a.Find(types.String(name))
		y, found := b.Find(types.String(name))
		if (x == nil) != !found || x != nil && types.Equal(x, y) != types.True {
			return types.False
		}
	}
	return types.True
}

// members is an object whose members are made when they are asked for: the
// roots, where one expression needs one step of twenty.
type members interface {
	find(name string) (ref.Val, bool)
	list() []string // in canonical order
}

// membersVal is members as a value.
type membersVal struct {
	inert
	m members
}

func (o *membersVal) Type() ref.Type                 { return objectType{} }
func (o *membersVal) Value() any                     { return o.m }
func (o *membersVal) ConvertToType(ref.Type) ref.Val { return fail("an object cannot be converted") }
func (o *membersVal) IsZeroValue() bool              { return len(o.m.list()) == 0 }
func (o *membersVal) Size() ref.Val                  { return types.Int(len(o.m.list())) }
func (o *membersVal) Equal(other ref.Val) ref.Val    { return equalMaps(o, other) }
func (o *membersVal) names() []string                { return o.m.list() }
func (o *membersVal) Get(key ref.Val) ref.Val        { return getFrom(o, key) }
func (o *membersVal) Contains(key ref.Val) ref.Val   { return containedIn(o, key) }

func (o *membersVal) Iterator() traits.Iterator {
	names := o.m.list()
	return &iterator{n: len(names), at: func(i int) ref.Val { return types.String(names[i]) }}
}

func (o *membersVal) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return fail("the keys of an object are text"), false
	}
	return o.m.find(string(name))
}
