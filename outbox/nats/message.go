package nats

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ringiflow/ringi/outbox"
)

const (
	// HeaderID is the header that carries the message id, by which the stream
	// and consumers drop repeats.
	HeaderID = jetstream.MsgIDHeader

	headerContentType = "content-type"
	cloudEvent        = "ce-"
	servers           = "nats-"
	ownPrefix         = "header-"

	// headerOverhead is what a header takes beside name and value, in bytes, and
	// headersOverhead what all headers take beside themselves.
	headerOverhead  = 4
	headersOverhead = 16
)

// message is m as it is sent.
func (s *Sink) message(m *outbox.Message) *nats.Msg {
	header := nats.Header{}
	header.Set(HeaderID, m.ID)
	if s.cfg.Stream != "" {
		header.Set(jetstream.ExpectedStreamHeader, s.cfg.Stream)
	}
	if m.ContentType != "" {
		header.Set(headerContentType, encode(m.ContentType, lineSafe))
	}
	header.Set(cloudEvent+"specversion", "1.0")
	for name, value := range outbox.Attributes(s.cfg.Source, m) {
		header.Set(cloudEvent+name, encode(value, attributeSafe))
	}
	for name, value := range m.Headers {
		header.Set(ownHeader(name), encode(value, lineSafe))
	}
	return &nats.Msg{Subject: s.cfg.Subject(m), Header: header, Data: m.Payload}
}

// ownHeader is the name under which a message's own header travels. A name such
// as Nats-Rollup would be an order to the server.
func ownHeader(name string) string {
	lower := strings.ToLower(name)
	if lower == headerContentType || strings.HasPrefix(lower, cloudEvent) || strings.HasPrefix(lower, servers) || strings.HasPrefix(lower, ownPrefix) {
		name = ownPrefix + name
	}
	return encode(name, nameSafe)
}

// lineSafe tells what may stand in a header value: anything that cannot end it.
func lineSafe(c byte) bool { return c >= ' ' && c < 0x7f && c != '%' }

// attributeSafe tells what may stand in the header of a CloudEvents attribute.
func attributeSafe(c byte) bool { return lineSafe(c) && c != ' ' && c != '"' }

// nameSafe tells what may stand in a header name.
func nameSafe(c byte) bool { return lineSafe(c) && c != ' ' && c != ':' }

// encode replaces the bytes that are not safe by %XX. A value is trimmed by
// readers, so a space at its ends is never safe.
func encode(s string, safe func(byte) bool) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if safe(c) && (c != ' ' || i > 0 && i < len(s)-1) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

// check refuses a message that no server takes.
func (s *Sink) check(msg *nats.Msg) error {
	if wrong := subjectFault(msg.Subject); wrong != "" {
		return fmt.Errorf("nats: subject %q %s; choose another for this aggregate type", msg.Subject, wrong)
	}
	n := headersOverhead + len(msg.Data)
	for name, values := range msg.Header {
		n += headerOverhead + len(name) + len(values[0])
	}
	if limit := s.MaxBytes(); n > limit {
		return fmt.Errorf("nats: the message has %d bytes, at most %d are allowed; store the data elsewhere and send a reference, or raise the limit here and at the server (max_payload)", n, limit)
	}
	return nil
}

func subjectFault(subject string) string {
	for token := range strings.SplitSeq(subject, ".") {
		if token == "" {
			return "has an empty part"
		}
	}
	for i := range len(subject) {
		if c := subject[i]; c <= ' ' || c == '*' || c == '>' || c == 0x7f {
			return fmt.Sprintf("contains %q", c)
		}
	}
	if strings.HasPrefix(subject, "$") {
		return "begins with $, which is the server's own"
	}
	return ""
}
