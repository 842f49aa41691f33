package relay

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// params are the parameters of a destination. Each is taken once; what nobody
// took is an error, so that a slip of the pen is no default. The first error
// stays.
type params struct {
	values url.Values
	path   func(string) string
	err    error
}

// take returns the values of a parameter.
func (p *params) take(name string) []string {
	list := p.values[name]
	p.values.Del(name)
	return list
}

// text returns the value of a parameter that may be given once.
func (p *params) text(name string) string {
	list := p.take(name)
	if len(list) > 1 {
		p.fail("the parameter %s is given %d times; give it once", name, len(list))
	}
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func (p *params) number(name string) int {
	text := p.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		p.fail("the parameter %s is %q; write a number above 0", name, text)
	}
	return n
}

func (p *params) yes(name string) bool {
	text := p.text(name)
	if text == "" {
		return false
	}
	yes, err := strconv.ParseBool(text)
	if err != nil {
		p.fail("the parameter %s is %q; write true or false", name, text)
	}
	return yes
}

// file returns the path in a parameter, or nothing.
func (p *params) file(name string) string {
	text := p.text(name)
	if text == "" {
		return ""
	}
	return p.path(text)
}

// secrets returns what the files of a parameter hold, without the space around it.
func (p *params) secrets(name string) (list []string) {
	for _, file := range p.take(name) {
		raw, err := os.ReadFile(p.path(file))
		if err != nil {
			p.fail("the parameter %s: %w", name, err)
			continue
		}
		list = append(list, strings.TrimSpace(string(raw)))
	}
	return list
}

// end returns the first error, or that of a parameter that nobody took.
func (p *params) end() error {
	if left := slices.Sorted(maps.Keys(p.values)); p.err == nil && len(left) > 0 {
		p.fail("there is no parameter %q", left[0])
	}
	return p.err
}

func (p *params) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// place is the address of a server with the user and the password that the
// parameters name.
func (p *params) place(scheme, address string) string {
	at := &url.URL{Scheme: scheme}
	at.Host, at.Path, _ = strings.Cut(address, "/")
	if strings.Contains(at.Host, "@") {
		p.fail("user and password do not belong before the host, where every user of the machine reads them; write ?user=U&password-file=F")
		return ""
	}
	if user, passwords := p.text("user"), p.secrets("password-file"); len(passwords) > 0 {
		at.User = url.UserPassword(user, passwords[0])
	} else if user != "" {
		at.User = url.User(user)
	}
	return at.String()
}
