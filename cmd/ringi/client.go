package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/api"
)

const (
	// adminKeySuffix makes the name of the key that serve makes, from the
	// database's path.
	adminKeySuffix = ".key"
	// devDir is where ringi dev keeps everything.
	devDir = ".ringi"
	// idLength is the length of a whole run id: nothing is looked up then.
	idLength = 36
	// shortestID is the shortest abbreviation of an id that is looked up: fewer
	// letters fit too many runs to be meant.
	shortestID = 4
	// most pages of runs are searched for an abbreviated id.
	idPages = 200
)

// service returns the server that the settings name, spoken to with the key
// that they name or that is found on this machine.
func (p *Program) service() (*api.Client, error) {
	server := p.get(setServer)
	key, err := p.key(server)
	if err != nil {
		return nil, err
	}
	return api.NewClient(api.ClientConfig{Address: server, Key: key})
}

// key finds the key: that of --as, else that of --key-file, else the one that a
// server on this machine made. The last is only ever sent to this machine.
func (p *Program) key(server string) (string, error) {
	if p.settings.as != "" {
		if !isLocal(server) {
			return "", usage("", "--as works only with the server of ringi dev on this machine, not with %s", server)
		}
		return p.keyOf(p.settings.as)
	}
	if file := p.get(setKeyFile); file != "" {
		key, err := readKey(p.path(file))
		if err != nil {
			return "", usage("--key-file and RINGI_KEY_FILE name a file that holds one key", "%v", err)
		}
		return key, nil
	}
	if !isLocal(server) {
		return "", nil
	}
	for _, file := range p.foundKeys() {
		key, err := readKey(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return key, err
	}
	return "", nil
}

// foundKeys are the places where a server on this machine leaves its key. Of
// several the one of the server that began last comes first.
func (p *Program) foundKeys() []string {
	beside := p.besideDatabase() + adminKeySuffix
	dev := p.path(filepath.Join(devDir, "ringi.db"+adminKeySuffix))
	a, aErr := os.Stat(beside)
	b, bErr := os.Stat(dev)
	if aErr == nil && bErr == nil && b.ModTime().After(a.ModTime()) {
		return []string{dev, beside}
	}
	return []string{beside, dev}
}

// databaseHere is the database file that the setting names. When nobody chose one,
// the file of ringi dev counts where there is no other.
func (p *Program) databaseHere() string {
	file := p.path(sqlitePath(p.get(setDatabase)))
	if p.given(setDatabase) {
		return file
	}
	dev := p.path(filepath.Join(devDir, "ringi.db"))
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(dev); err == nil {
			return dev
		}
	}
	return file
}

// keyOf returns the key of one of the people of ringi dev.
func (p *Program) keyOf(name string) (string, error) {
	dir := p.path(filepath.Join(devDir, "keys"))
	if _, err := os.Stat(dir); err != nil {
		return "", usage("start ringi dev in this directory first", "--as works only beside ringi dev: there is no %s here", filepath.Join(devDir, "keys"))
	}
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return "", usage("", "%q is not a name", name)
	}
	key, err := readKey(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		entries, _ := os.ReadDir(dir) // without names the error still says enough
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return "", usage("take one of "+strings.Join(names, ", "), "nobody here is called %s", name)
	}
	return key, err
}

// readKey reads a file that holds one key.
func readKey(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	key := string(bytes.TrimSpace(raw))
	if key == "" || strings.ContainsAny(key, " \t\r\n") {
		return "", fmt.Errorf("%s does not hold one key and nothing else", file)
	}
	return key, nil
}

// isLocal reports whether an address is on this machine.
func isLocal(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	return isLocalHost(u.Hostname())
}

// isLocalHost reports whether a host without port is this machine and no other
// can reach it.
func isLocalHost(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// sqlitePath is the path in a setting of the form sqlite:PATH.
func sqlitePath(database string) string { return strings.TrimPrefix(database, "sqlite:") }

// do sends one command.
func do(ctx context.Context, svc ringi.Service, run ringi.RunID, action ringi.Action) (ringi.Result, error) {
	results := svc.Do(ctx, ringi.Command{Tenant: ringi.DefaultTenant, Run: run, Do: action})
	if len(results) != 1 {
		return ringi.Result{}, fmt.Errorf("the server gave %d results for one command", len(results))
	}
	return results[0], results[0].Err
}

// findRun returns the run that a text names: its whole id, the beginning or end
// of its id if only one run fits, or its start key.
func findRun(ctx context.Context, svc ringi.Service, text string) (ringi.RunID, error) {
	return lookUp(text, func(q ringi.RunQuery) ([]ringi.RunID, string, error) {
		page, err := svc.List(ctx, q)
		runs := make([]ringi.RunID, len(page.Runs))
		for i, r := range page.Runs {
			runs[i] = r.Run
		}
		return runs, page.Next, err
	})
}

// lookUp finds a run in lists of runs. An abbreviated id needs them all, a key
// has an index.
func lookUp(text string, list func(ringi.RunQuery) (runs []ringi.RunID, next string, err error)) (ringi.RunID, error) {
	text = strings.TrimSpace(text)
	if id := strings.ToLower(text); isIDLike(id) {
		if len(id) == idLength {
			return ringi.RunID(id), nil
		}
		run, err := abbreviated(id, list)
		if run != "" || err != nil {
			return run, err
		}
	}
	runs, next, err := list(ringi.RunQuery{Tenant: ringi.DefaultTenant, Key: text, Limit: 2})
	switch {
	case err != nil:
		return "", err
	case len(runs) == 0 && next == "":
		return "", &ringi.Error{Code: ringi.CodeNotFound, Message: fmt.Sprintf("there is no run %s", text), Hint: "ringi runs lists them; a run is named by its id, its beginning or end, or its key"}
	case len(runs) > 1:
		return "", ambiguous(text, runs)
	}
	return runs[0], nil
}

func isIDLike(id string) bool {
	return len(id) >= shortestID && len(id) <= idLength && strings.Trim(id, "0123456789abcdef-") == ""
}

// abbreviated finds the only run whose id begins or ends so; "" when none does.
func abbreviated(id string, list func(ringi.RunQuery) ([]ringi.RunID, string, error)) (ringi.RunID, error) {
	var found []ringi.RunID
	q := ringi.RunQuery{Tenant: ringi.DefaultTenant, Limit: largestPage}
	for range idPages {
		runs, next, err := list(q)
		if err != nil {
			return "", err
		}
		for _, r := range runs {
			if strings.HasPrefix(string(r), id) || strings.HasSuffix(string(r), id) {
				found = append(found, r)
			}
		}
		if q.After = next; next == "" || len(found) > 1 {
			break
		}
	}
	switch {
	case len(found) > 1:
		return "", ambiguous(id, found)
	case q.After != "":
		return "", &ending{code: exitNotFound, message: fmt.Sprintf("there are too many runs to be sure about the abbreviated id %s", id), hint: "write the whole id"}
	case len(found) == 0:
		return "", nil
	}
	return found[0], nil
}

func ambiguous(text string, runs []ringi.RunID) error {
	return &ending{code: exitNotFound, message: fmt.Sprintf("%s fits more than one run, as %s and %s", text, runs[0], runs[1]), hint: "write more of the id; its end differs most"}
}

// document reads a JSON value that an argument gives: @FILE, - for standard
// input, or the JSON itself.
func (p *Program) document(flag, value string) (json.RawMessage, error) {
	var raw []byte
	var err error
	from := "--" + flag
	switch {
	case value == "":
		return nil, nil
	case value == "-":
		from = "standard input"
		raw, err = io.ReadAll(io.LimitReader(p.Stdin, api.MaxBody+1))
	case strings.HasPrefix(value, "@"):
		from = value[1:]
		raw, err = os.ReadFile(p.path(value[1:]))
	default:
		raw = []byte(value)
	}
	if err != nil {
		return nil, usage("--"+flag+" takes @FILE, - for standard input, or JSON", "%v", err)
	}
	raw = bytes.TrimSpace(raw)
	if !json.Valid(raw) {
		return nil, usage("--"+flag+" takes @FILE, - for standard input, or JSON", "%s: not JSON: %s", from, whyNotJSON(raw))
	}
	return raw, nil
}

func whyNotJSON(raw []byte) string {
	if len(raw) == 0 {
		return "it is empty"
	}
	var v json.RawMessage
	err := json.Unmarshal(raw, &v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := raw[:min(int(syntax.Offset), len(raw))]
		line := 1 + bytes.Count(before, []byte("\n"))
		column := len(before) - bytes.LastIndexByte(before, '\n') - 1
		return fmt.Sprintf("line %d, column %d: %v", line, max(column, 1), err)
	}
	return fmt.Sprint(err)
}
