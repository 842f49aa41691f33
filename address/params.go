package address

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Params are the parameters of an address. Each is taken once; what nobody took is
// an error, so that a slip of the pen is no default. The first error stays. They
// are for one goroutine.
type Params struct {
	values url.Values
	path   func(string) string
	err    error
}

// Split parts an address SCHEME://PLACE?PARAMETERS. path finds a file that a
// parameter names; nil takes the name as it is.
func Split(text string, path func(string) string) (scheme, place string, with *Params, err error) {
	if path == nil {
		path = func(name string) string { return name }
	}
	scheme, rest, _ := strings.Cut(text, "://")
	place, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", "", nil, errors.New("the parameters behind ? cannot be read; write them as in a URL")
	}
	return scheme, place, &Params{values: values, path: path}, nil
}

// Take returns the values of a parameter that may be given several times.
func (p *Params) Take(name string) []string {
	list := p.values[name]
	p.values.Del(name)
	return list
}

// Text returns the value of a parameter that may be given once.
func (p *Params) Text(name string) string {
	list := p.Take(name)
	if len(list) > 1 {
		p.Fail("the parameter %s is given %d times; give it once", name, len(list))
	}
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// Number returns a number above 0; 0 is not given.
func (p *Params) Number(name string) int {
	text := p.Text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		p.Fail("the parameter %s is %q; write a number above 0", name, text)
	}
	return n
}

// Span returns a length of time above 0; 0 is not given.
func (p *Params) Span(name string) time.Duration {
	text := p.Text(name)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		p.Fail("the parameter %s is %q; write a span of time above 0, as in 30s", name, text)
	}
	return d
}

// Yes returns whether a parameter is true.
func (p *Params) Yes(name string) bool {
	text := p.Text(name)
	if text == "" {
		return false
	}
	yes, err := strconv.ParseBool(text)
	if err != nil {
		p.Fail("the parameter %s is %q; write true or false", name, text)
	}
	return yes
}

// File returns the path in a parameter, or nothing.
func (p *Params) File(name string) string {
	text := p.Text(name)
	if text == "" {
		return ""
	}
	return p.path(text)
}

// Secrets returns what the files of a parameter hold, without the space around it.
func (p *Params) Secrets(name string) (list []string) {
	for _, file := range p.Take(name) {
		raw, err := os.ReadFile(p.path(file))
		if err != nil {
			p.Fail("the parameter %s: %w", name, err)
			continue
		}
		list = append(list, strings.TrimSpace(string(raw)))
	}
	return list
}

// End returns the first error, or that of a parameter that nobody took.
func (p *Params) End() error {
	if left := slices.Sorted(maps.Keys(p.values)); p.err == nil && len(left) > 0 {
		p.Fail("there is no parameter %q", left[0])
	}
	return p.err
}

// Fail notes an error, unless there is one already.
func (p *Params) Fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// Err is the first error so far.
func (p *Params) Err() error { return p.err }

// Left are the parameters that nobody took, as they stand in a URL.
func (p *Params) Left() string { return p.values.Encode() }

// Server is the address of a server with the user and the password-file that the
// parameters name. An address with a user in it is an error.
func (p *Params) Server(scheme, place string) string {
	at := &url.URL{Scheme: scheme}
	at.Host, at.Path, _ = strings.Cut(place, "/")
	if strings.Contains(at.Host, "@") {
		p.Fail("user and password do not belong before the host, where every user of the machine reads them; write ?user=U&password-file=F")
		return ""
	}
	if user, passwords := p.Text("user"), p.Secrets("password-file"); len(passwords) > 0 {
		at.User = url.UserPassword(user, passwords[0])
	} else if user != "" {
		at.User = url.User(user)
	}
	return at.String()
}
