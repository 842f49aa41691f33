package schema

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ringiflow/ringi/workflow/grammar"
)

// sharedName is the name of the definition of a kind of value.
func sharedName(k grammar.Kind) (name string, ok bool) {
	name = map[grammar.Kind]string{
		grammar.Name: "name", grammar.Prose: "prose", grammar.Reason: "reason", grammar.Title: "title",
		grammar.Text: "text", grammar.KeyText: "title", grammar.Who: "who", grammar.Duration: "duration",
		grammar.Instant: "instant", grammar.Condition: "condition", grammar.Object: "object",
		grammar.Table: "table", grammar.Address: "address", grammar.Schema: "json_schema",
	}[k]
	return name, name != ""
}

// hasExpression is true for texts with an expression in them.
const hasExpression = `\$\{`

// wholeExpression is true for texts that are one expression.
const wholeExpression = `^\s*\$\{[\s\S]*\}\s*$`

// shared are the kinds of values that stand in many places. Patterns are such
// that programs with any dialect of regular expressions agree on them.
func shared() object {
	str := member{"type", "string"}
	dynamic := object{{"pattern", hasExpression}}
	return object{
		{"name", object{
			str,
			{"minLength", 1},
			{"maxLength", grammar.MaxName},
			{"pattern", `^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$`},
			{"not", dynamic},
		}},
		{"prose", object{str, {"maxLength", grammar.MaxDescription}}},
		{"reason", object{str, {"minLength", 1}, {"maxLength", grammar.MaxDescription}}},
		{"title", object{str, {"if", object{{"not", dynamic}}}, {"then", defRef("name")}}},
		{"text", object{str, {"if", object{{"not", dynamic}}}, {"then", object{{"maxLength", grammar.MaxDescription}}}}},
		{"who", object{{"description", "group:NAME or user:ID"}, {"allOf", []object{defRef("text")}}, {"pattern", `^\s*\$\{|^(group|user):[\s\S]*\S`}}},
		{"duration", object{{"description", "a whole number and a unit: 500ms, 90s, 15m, 4h or 3d"}, str, {"pattern", durationPattern()}}},
		{"instant", object{str, {"anyOf", []object{dynamic, {{"pattern", instantPattern}}}}}},
		{"condition", object{{"description", "an expression without ${ }, such as input.amount > 100"}, {"type", []string{"string", "boolean"}}}},
		{"object", object{{"type", []string{"object", "string"}}, {"if", object{str}}, {"then", object{{"pattern", wholeExpression}}}}},
		{"table", object{{"type", []string{"array", "string"}}, {"if", object{str}}, {"then", object{{"pattern", wholeExpression}}}}},
		{"address", object{{"allOf", []object{defRef("text")}}, {"pattern", addressPattern}}},
		{"json_schema", jsonSchema()},
	}
}

// headerPattern is the name of a header. Those that the engine sets itself are
// left to the parser.
const headerPattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$"

// addressPattern is the beginning of an address, as far as it is fixed.
const addressPattern = `^([hH][tT][tT][pP][sS]?://|([hH]([tT]([tT]([pP]([sS]?(:/?)?)?)?)?)?)?\$\{)`

// instantPattern is a time as in RFC 3339. That a month has 31 days only at
// times is left to the parser.
const instantPattern = `^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-4]):([0-5][0-9]|60))$`

// durationPattern is a duration between 1ms and the longest one.
func durationPattern() string {
	const longest = 3650 * 24 * time.Hour
	var units []string
	for _, u := range []struct {
		name string
		unit time.Duration
	}{{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}} {
		most := min(int64(longest/u.unit), 1<<31-1)
		units = append(units, fmt.Sprintf("0*(%s)%s", upTo(most), u.name))
	}
	return "^(" + strings.Join(units, "|") + ")$"
}

// upTo is a pattern for the whole numbers from 1 to n, without leading zeros.
func upTo(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var parts []string
	if len(digits) > 1 {
		parts = append(parts, fmt.Sprintf("[1-9][0-9]{0,%d}", len(digits)-2))
	}
	for i := range digits { // numbers that are smaller at digit i and equal before
		low, high := byte('0'), digits[i]-1
		if i == 0 {
			low = '1'
		}
		if high >= low && high <= '9' {
			parts = append(parts, fmt.Sprintf("%s[%c-%c][0-9]{%d}", digits[:i], low, high, len(digits)-1-i))
		}
	}
	return strings.Join(append(parts, digits), "|")
}

// jsonSchema describes schemas, as far as it helps to write them; the parser
// checks them whole.
func jsonSchema() object {
	self, number, texts := defRef("json_schema"), object{{"type", "number"}}, object{{"type", "array"}, {"items", object{{"type", "string"}}}}
	some := object{{"type", "array"}, {"items", self}, {"minItems", 1}}
	kinds := object{{"enum", []string{"object", "array", "string", "number", "integer", "boolean", "null"}}}
	named := object{{"type", "object"}, {"additionalProperties", self}}
	size := object{{"type", "integer"}, {"minimum", 0}}
	properties := object{
		{"type", object{{"description", "What kind of value it is."}, {"anyOf", []object{kinds, {{"type", "array"}, {"items", kinds}, {"minItems", 1}}}}}},
		{"properties", append(object{{"description", "The fields of an object."}}, named...)},
		{"required", append(object{{"description", "The fields that must be there. Expressions can read the others only with .? and orValue."}}, texts...)},
		{"items", append(object{{"description", "What each entry of a list is."}}, self...)},
		{"additionalProperties", append(object{{"description", "What fields may be that properties does not name; false is none."}}, self...)},
		{"enum", object{{"description", "The values that are allowed."}, {"type", "array"}}},
		{"const", object{{"description", "The one value that is allowed."}}},
		{"title", object{{"type", "string"}}},
		{"description", object{{"type", "string"}}},
		{"format", object{{"description", "Such as date-time, email or uri; a note for people and forms."}, {"type", "string"}}},
		{"pattern", object{{"type", "string"}}},
		{"$ref", object{{"description", "A part of this schema, such as #/$defs/name."}, {"type", "string"}}},
		{"$defs", named},
	}
	for _, k := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} {
		properties = append(properties, member{k, number})
	}
	for _, k := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"} {
		properties = append(properties, member{k, size})
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		properties = append(properties, member{k, some})
	}
	return object{{"description", "JSON Schema, draft 2020-12."}, {"type", []string{"object", "boolean"}}, {"properties", properties}}
}
