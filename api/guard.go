package api

import (
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Guard keeps web pages of other sites from using a server through the browser
// of somebody who can reach it. A Host that is neither loopback nor that of
// publicURL is refused with 421: after a DNS rebinding the browser would
// otherwise talk to us in the name of the page. A foreign Origin, and a
// request that the browser says another site made, is refused with 403; only
// following a link (a GET that navigates) is open to other sites, because it
// changes nothing. publicURL is the address under which people reach the
// server, http or https with a host and nothing else; "" is loopback only.
func Guard(publicURL string, next http.Handler) (http.Handler, error) {
	g := guard{next: next}
	if publicURL == "" {
		return g, nil
	}
	u, err := url.Parse(publicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("api: the public address %q must be http:// or https:// and a host, as in https://ringi.example.com", publicURL)
	}
	g.scheme, g.host = u.Scheme, withPort(u.Scheme, u.Host)
	return g, nil
}

type guard struct {
	next         http.Handler
	scheme, host string // of the public address, the port always there; "" without one
}

// ServeHTTP refuses or passes on.
func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !g.knows(r.Host):
		refuse(http.StatusMisdirectedRequest, fmt.Sprintf("this server does not answer for the host %q", r.Host),
			"use its public address, or name that with --public-url").write(w)
	case !g.ownOrigin(r) || foreignSite(r):
		refuse(http.StatusForbidden, "requests from pages of other sites are not answered",
			"call the API from a program, with a key").write(w)
	default:
		g.next.ServeHTTP(w, r)
	}
}

func (g guard) knows(host string) bool {
	if host == "" {
		return false
	}
	return isLoopback(host) || g.host != "" && strings.EqualFold(withPort(g.scheme, host), g.host)
}

func (g guard) ownOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.Host == "" || len(origins) > 1 {
		return false
	}
	if g.host != "" && u.Scheme == g.scheme && strings.EqualFold(withPort(u.Scheme, u.Host), g.host) {
		return true
	}
	return isLoopback(u.Host) && strings.EqualFold(u.Host, r.Host)
}

// foreignSite reports whether the browser says that another site sent this,
// unless it only follows a link.
func foreignSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return !reads || r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

func isLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

// withPort is the host with the port that its scheme implies.
func withPort(scheme, host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	port := "80"
	if scheme == "https" {
		port = "443"
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// understands reports whether the body of a request has a media type that its
// route takes. A page can post a form or plain text to any site without being
// asked, but not these.
func understands(r *http.Request, yaml bool) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return false
	}
	switch kind {
	case "application/json":
		return true
	case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml":
		return yaml
	}
	return false
}
