package api

import (
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// A shape is what one place of a body may hold, as far as the door looks at it
// before anything is decoded. It follows from the schema of the route. Its zero
// value is a single value of ours: text, a number, true or false.
type shape struct {
	fields map[string]*shape // of an object of ours, by their exact names; nil is no such object
	items  *shape            // of a list of ours; nil is no such list
	free   bool              // any JSON document: a payload, which the engine judges
	whole  bool              // a whole number
	worded bool              // text for people: what no text can keep is replaced in it, and no reason to refuse

	// each says that a wrong item of the list is refused by itself, since the
	// calls of the others were made and their reports must not wait for it. item
	// is the schema that such an item is held against.
	each bool
	item *huma.Schema

	// lax says that the text of a payload here may hold what no document can
	// keep: what a call answered is recorded as bad, and not refused, because the
	// call did happen.
	lax bool
}

// shapeOf reads the shape of a schema. Schemas of bodies do not hold themselves.
func shapeOf(known huma.Registry, s *huma.Schema) *shape {
	s = resolved(known, s)
	switch {
	case s.Type == huma.TypeObject && len(s.Properties) > 0:
		sh := &shape{fields: make(map[string]*shape, len(s.Properties))}
		for name, p := range s.Properties {
			sh.fields[name] = shapeOf(known, p)
		}
		return sh
	case s.Type == huma.TypeArray && s.Items != nil:
		return &shape{items: shapeOf(known, s.Items)}
	case s.Type == huma.TypeInteger:
		return &shape{whole: true}
	case s.Type == huma.TypeString, s.Type == huma.TypeBoolean, s.Type == huma.TypeNumber:
		return &shape{}
	}
	return &shape{free: true}
}

func resolved(known huma.Registry, s *huma.Schema) *huma.Schema {
	for s.Ref != "" {
		s = known.SchemaFromRef(s.Ref)
	}
	return s
}

// A door is what a route lets in.
type door struct {
	shape  *shape
	schema *huma.Schema // of the body, the items of lists whose items are refused by themselves left out
}

// doorOf makes the door of a route with a body of JSON. itemwise names the list
// whose items are refused by themselves; "" is none.
func doorOf(known huma.Registry, body *huma.Schema, itemwise string) door {
	d := door{shape: shapeOf(known, body), schema: resolved(known, body)}
	if itemwise == "" {
		return d
	}
	list := resolved(known, d.schema.Properties[itemwise])
	sh := d.shape.fields[itemwise]
	sh.each, sh.item = true, list.Items
	if output := sh.items.fields["output"]; output != nil {
		output.lax = true
	}
	if message := sh.items.fields["message"]; message != nil {
		message.worded = true
	}
	whole, counted := *d.schema, *list
	counted.Items = &huma.Schema{}
	whole.Properties = make(map[string]*huma.Schema, len(d.schema.Properties))
	for name, p := range d.schema.Properties {
		whole.Properties[name] = p
	}
	whole.Properties[itemwise] = &counted
	d.schema = &whole
	return d
}

// names are the fields of an object, in order.
func (s *shape) names() []string {
	out := make([]string, 0, len(s.fields))
	for name := range s.fields {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
