package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/ringiflow/ringi"
)

// mostDrained is how much of a body that is too large is read to its end, in
// bytes. A client that still sends when the connection is closed sees a broken
// connection in place of the answer, and would send the same again for ever.
const mostDrained = 64 << 20

// doors makes the doors of all routes that take JSON.
func (s *Server) makeDoors() {
	s.doors = map[string]door{}
	known := s.api.OpenAPI().Components.Schemas
	for _, r := range s.routes {
		body := operation(s.api.OpenAPI().Paths[r.Path], r.Method).RequestBody
		if body == nil || r.YAML {
			continue
		}
		s.doors[r.ID] = doorOf(known, body.Content["application/json"].Schema, r.itemwise)
	}
}

// operation is that of a path and a method.
func operation(p *huma.PathItem, method string) *huma.Operation {
	if method == http.MethodGet {
		return p.Get
	}
	return p.Post
}

// admit is the door: it lets in parameters and bodies that mean one thing only,
// and fit the route. It is a huma middleware behind authorise.
func (s *Server) admit(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	if refused := checkParameters(r); refused != nil {
		refused.write(w)
		return
	}
	d, ok := s.doors[ctx.Operation().OperationID]
	if !ok {
		next(ctx)
		return
	}
	body, refused := readBody(ctx.BodyReader())
	if refused != nil {
		refused.write(w)
		return
	}
	if len(body) == 0 {
		next(ctx) // huma says that it is missing
		return
	}
	body, wrong, refused := s.check(d, body)
	if refused != nil {
		refused.write(w)
		return
	}
	if len(wrong) > 0 {
		ctx = huma.WithValue(ctx, wrongKey{}, wrong)
	}
	next(bodyContext{ctx, bytes.NewReader(body)})
}

// bodyContext gives huma the body that was read here.
type bodyContext struct {
	requestContext
	body io.Reader
}

// BodyReader returns the body.
func (c bodyContext) BodyReader() io.Reader { return c.body }

// Unwrap returns the context inside, for the adapter.
func (c bodyContext) Unwrap() huma.Context { return c.requestContext }

// readBody reads a body that is not too large.
func readBody(in io.Reader) ([]byte, *Refusal) {
	body, err := io.ReadAll(io.LimitReader(in, MaxBody+1))
	if err != nil {
		return nil, refuse(http.StatusRequestTimeout, "the body did not arrive", "send it again")
	}
	if len(body) <= MaxBody {
		return body, nil
	}
	_, _ = io.CopyN(io.Discard, in, mostDrained) // whatever comes of it, the answer is the same
	return nil, refusal(&ringi.Error{
		Code: ringi.CodeTooLarge, Message: fmt.Sprintf("the body is above %d bytes", MaxBody),
		Hint: fmt.Sprintf("a request holds at most %d bytes; send less at a time", MaxBody),
	})
}

// checkParameters refuses a path or query that no text can be. JSON has its own
// check; this is the same for the rest of what a client names things with.
func checkParameters(r *http.Request) *Refusal {
	if !clean(r.URL.Path) {
		return refuse(http.StatusBadRequest, "the path holds bytes that are not UTF-8, or a NUL", "encode the text as UTF-8 before it is percent-encoded")
	}
	for name, values := range r.URL.Query() {
		for _, v := range append(values, name) {
			if !clean(v) {
				return refuse(http.StatusBadRequest, fmt.Sprintf("the parameter %q holds bytes that are not UTF-8, or a NUL", shortened(name)),
					"encode the text as UTF-8 before it is percent-encoded")
			}
		}
	}
	return nil
}

// clean reports whether a text can be kept as it is.
func clean(text string) bool { return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 }

type wrongKey struct{}

// wrongItems are the items of the request that were refused by themselves.
func wrongItems(ctx context.Context) map[int]*ItemError {
	wrong, _ := ctx.Value(wrongKey{}).(map[int]*ItemError)
	return wrong
}

// check holds a body against the door of its route. Items that are refused by
// themselves are taken out of the body; an empty object stands in their place.
func (s *Server) check(d door, body []byte) (rest []byte, wrong map[int]*ItemError, refused *Refusal) {
	scan := scanner{text: body}
	value, err := scan.scan(d.shape)
	if err != nil {
		hint := "send one document of JSON"
		var at *syntaxError
		if errors.As(err, &at) {
			hint = fmt.Sprintf("correct it at: %s", around(body, at.at))
		}
		return nil, nil, badRequest(hint, FieldError{Location: "body", Message: err.Error()})
	}
	faults := scan.faults
	if len(faults) == 0 {
		faults = s.unfit(d.schema, "body", value)
	}
	if len(faults) > 0 {
		return nil, nil, badRequest("compare the request with /openapi.json", faults...)
	}
	for _, l := range scan.lists {
		body, wrong = s.sift(d, l, body)
	}
	return body, wrong, nil
}

// around shows the text near a byte, without what is not printable.
func around(body []byte, at int) string {
	const width = 20
	from, to := max(min(at, len(body))-width, 0), min(at+width, len(body))
	return fmt.Sprintf("%q", strings.ToValidUTF8(string(body[from:to]), "?"))
}

// sift takes the wrong items out of a body. They stand in the order of the list.
func (s *Server) sift(d door, l *splitList, body []byte) ([]byte, map[int]*ItemError) {
	wrong := map[int]*ItemError{}
	var out []byte
	end := 0
	for i, item := range l.items {
		faults := item.faults
		if len(faults) == 0 {
			faults = s.unfit(d.itemSchema(), fmt.Sprintf("body.items[%d]", i), item.value)
		}
		if len(faults) == 0 {
			continue
		}
		wrong[i] = &ItemError{
			Code: ringi.CodeInvalid, Message: told(faults),
			Hint: "mend the item; if its output cannot be sent, report fail with a code of yours and applied unknown",
		}
		out = append(append(out, body[end:item.from]...), '{', '}')
		end = item.to
	}
	if len(wrong) == 0 {
		return body, nil
	}
	return append(out, body[end:]...), wrong
}

// itemSchema is the schema of an item that is refused by itself.
func (d door) itemSchema() *huma.Schema {
	for _, f := range d.shape.fields {
		if f.each {
			return f.item
		}
	}
	return nil
}

// unfit holds a value against a schema.
func (s *Server) unfit(schema *huma.Schema, at string, value any) []FieldError {
	path := huma.NewPathBuffer([]byte{}, 0)
	path.Push(at)
	var res huma.ValidateResult
	huma.Validate(s.api.OpenAPI().Components.Schemas, schema, path, huma.ModeWriteToServer, value, &res)
	var faults []FieldError
	for _, err := range res.Errors[:min(len(res.Errors), mostFaults)] {
		var d *huma.ErrorDetail
		if errors.As(err, &d) {
			faults = append(faults, FieldError{Location: d.Location, Message: d.Message})
		} else {
			faults = append(faults, FieldError{Location: at, Message: err.Error()})
		}
	}
	return faults
}

// badRequest is a refusal that names the places that are wrong.
func badRequest(hint string, faults ...FieldError) *Refusal {
	r := refuse(http.StatusBadRequest, told(faults), hint)
	r.Errors = faults
	return r
}

// told is all that is wrong, in one line.
func told(faults []FieldError) string {
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = strings.TrimSpace(f.Location + " " + f.Message)
	}
	return strings.Join(texts, "; ")
}
