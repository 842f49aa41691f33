package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// humaConfig is the API as huma is to serve it: JSON only, unknown parameters
// refused, its errors turned into Refusals, and none of its pages.
func humaConfig(version string) huma.Config {
	c := huma.DefaultConfig("ringi", version)
	c.Info.Description = "Durable workflows. Every call needs a key; refusals are problems of RFC 9457 with code, hint and retryable."
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil
	c.RejectUnknownQueryParameters = true
	c.Transformers = []huma.Transformer{asRefusal}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"key": bearer()}
	return c
}

// refusalSchema is where the document holds the shape of a Refusal. Its name is
// the one that huma would give it.
const refusalSchema = "Refusal"

// refusalResponse documents the body of every answer that is not a success.
func refusalResponse() *huma.Response {
	return &huma.Response{
		Description: "Refused. The code says why, the hint what to do next.",
		Content: map[string]*huma.MediaType{
			problemType: {Schema: &huma.Schema{Ref: "#/components/schemas/" + refusalSchema}},
		},
	}
}

// shapeOfRefusal describes a Refusal. It is written down here because huma
// derives schemas only from what handlers take and give.
func shapeOfRefusal() *huma.Schema {
	text := func(about string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: about} }
	codes := text("what kind of thing went wrong")
	for _, c := range Codes() {
		codes.Enum = append(codes.Enum, string(c))
	}
	return &huma.Schema{
		Type:        huma.TypeObject,
		Description: "A problem of RFC 9457 with our code, hint and retryable.",
		Required:    []string{"type", "title", "status", "code", "detail", "retryable"},
		Properties: map[string]*huma.Schema{
			"type":      text("always about:blank: the code says what kind it is"),
			"title":     text("the text of the HTTP status"),
			"status":    {Type: huma.TypeInteger, Description: "the HTTP status"},
			"code":      codes,
			"detail":    text("what happened, for a person"),
			"hint":      text("what to do next"),
			"retryable": {Type: huma.TypeBoolean, Description: "whether the same request may succeed later, unchanged"},
			"errors": {Type: huma.TypeArray, Description: "with invalid: the places of the request that are wrong", Items: &huma.Schema{
				Type: huma.TypeObject, Required: []string{"location", "message"},
				Properties: map[string]*huma.Schema{"location": text("path, query, header or body, then the way to the field"), "message": text("")},
			}},
			"problems": {
				Type: huma.TypeArray, Description: "with a definition that was not accepted: what is wrong in it",
				Items: &huma.Schema{Ref: "#/components/schemas/Problem"},
			},
		},
	}
}

// serveOpenAPI writes the document once all routes are known, and serves it to
// everybody: it holds no secrets and a client needs it before it has a key.
func (s *Server) serveOpenAPI() error {
	doc := s.api.OpenAPI()
	delete(doc.Components.Schemas.Map(), "ErrorModel") // huma's own error, which never goes out
	doc.Components.Schemas.Map()[refusalSchema] = shapeOfRefusal()
	inJSON, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("api: write the OpenAPI document: %w", err)
	}
	inYAML, err := doc.YAML()
	if err != nil {
		return fmt.Errorf("api: write the OpenAPI document: %w", err)
	}
	s.mux.HandleFunc("GET /openapi.json", document("application/openapi+json", inJSON))
	s.mux.HandleFunc("GET /openapi.yaml", document("application/openapi+yaml", inYAML))
	return nil
}

func document(kind string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body) // the reader may be gone; there is nobody left to tell
	}
}
