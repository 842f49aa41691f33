package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
)

const (
	// AdminKeySuffix makes the name of the key that serve makes, from the
	// database's path.
	AdminKeySuffix = ".key"
	// DevDir is where ringi dev keeps everything.
	DevDir = ".ringi"
)

// Service returns the server that the settings name, spoken to with the key
// that they name or that is found on this machine.
func (p *Program) Service() (*api.Client, error) {
	server := p.Get(SetServer)
	key, err := p.Key(server)
	if err != nil {
		return nil, err
	}
	return api.NewClient(api.ClientConfig{Address: server, Key: key})
}

// Key finds the key: that of --as, else that of --key-file, else the one that a
// server on this machine made. The last is only ever sent to this machine.
func (p *Program) Key(server string) (string, error) {
	if p.settings.as != "" {
		if !isLocal(server) {
			return "", Usage("", "--as works only with the server of ringi dev on this machine, not with %s", server)
		}
		return p.keyOf(p.settings.as)
	}
	if file := p.Get(SetKeyFile); file != "" {
		key, err := ReadKey(p.Path(file))
		if err != nil {
			return "", Usage("--key-file and RINGI_KEY_FILE name a file that holds one key", "%v", err)
		}
		return key, nil
	}
	if !isLocal(server) {
		return "", nil
	}
	for _, file := range p.foundKeys() {
		key, err := ReadKey(file)
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
	beside := p.BesideDatabase() + AdminKeySuffix
	dev := p.Path(filepath.Join(DevDir, "ringi.db"+AdminKeySuffix))
	a, aErr := os.Stat(beside)
	b, bErr := os.Stat(dev)
	if aErr == nil && bErr == nil && b.ModTime().After(a.ModTime()) {
		return []string{dev, beside}
	}
	return []string{beside, dev}
}

// DatabaseHere is the database file that the setting names. When nobody chose one,
// the file of ringi dev counts where there is no other.
func (p *Program) DatabaseHere() string {
	file := p.Path(sqlitePath(p.Get(SetDatabase)))
	if p.Given(SetDatabase) {
		return file
	}
	dev := p.Path(filepath.Join(DevDir, "ringi.db"))
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(dev); err == nil {
			return dev
		}
	}
	return file
}

// keyOf returns the key of one of the people of ringi dev.
func (p *Program) keyOf(name string) (string, error) {
	dir := p.Path(filepath.Join(DevDir, "keys"))
	if _, err := os.Stat(dir); err != nil {
		return "", Usage("start ringi dev in this directory first", "--as works only beside ringi dev: there is no %s here", filepath.Join(DevDir, "keys"))
	}
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return "", Usage("", "%q is not a name", name)
	}
	key, err := ReadKey(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		entries, _ := os.ReadDir(dir) // without names the error still says enough
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return "", Usage("take one of "+strings.Join(names, ", "), "nobody here is called %s", name)
	}
	return key, err
}

// ReadKey reads a file that holds one key.
func ReadKey(file string) (string, error) {
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

// isLocal reports whether an address is on this machine, or all of a list are.
func isLocal(server string) bool {
	all, err := api.Addresses(server)
	return err == nil && !slices.ContainsFunc(all, func(address string) bool {
		u, err := url.Parse(address)
		return err != nil || !IsLocalHost(u.Hostname())
	})
}

// IsLocalHost reports whether a host without port is this machine and no other
// can reach it.
func IsLocalHost(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// sqlitePath is the path in a setting of the form sqlite:PATH.
func sqlitePath(database string) string { return strings.TrimPrefix(database, "sqlite:") }

// IsPostgres reports whether a value of the setting names a PostgreSQL database.
func IsPostgres(value string) bool {
	return strings.HasPrefix(value, "postgres://") || strings.HasPrefix(value, "postgresql://")
}

// IsMySQL reports whether a value of the setting names a database of MariaDB or MySQL.
func IsMySQL(value string) bool { return strings.HasPrefix(value, "mysql://") }

// NoRunsIn refuses a value of the setting that names a database which can hold the
// outbox of a service and no runs.
func NoRunsIn(value string) error {
	if !IsMySQL(value) {
		return nil
	}
	return Usage("write sqlite:PATH or postgres://…; ringi relay and ringi outbox work on MariaDB and MySQL", "runs cannot be kept in %s", WithoutPassword(value))
}

// BesideDatabase is the path that files of a server begin with, such as its
// admin key: the database file, or where the default one would be.
func (p *Program) BesideDatabase() string {
	if value := p.Get(SetDatabase); !IsPostgres(value) {
		return p.Path(sqlitePath(value))
	}
	return p.Path(sqlitePath(DefaultDatabase))
}

// WithoutPassword is a value of the setting as it may be shown.
func WithoutPassword(value string) string {
	if !IsPostgres(value) && !IsMySQL(value) {
		return value
	}
	u, err := url.Parse(value)
	if err != nil {
		scheme, _, _ := strings.Cut(value, "//")
		return scheme + "//…" // who knows what is in it
	}
	q := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if q.Has(name) {
			q.Set(name, "xxxxx")
			u.RawQuery = q.Encode()
		}
	}
	return u.Redacted()
}

// RingiSink is a server of ringi as a destination.
func (p *Program) RingiSink(server, keyFile string) (*outbox.Runs, error) {
	key, err := p.Key(server)
	if keyFile != "" {
		key, err = ReadKey(keyFile)
	}
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(api.ClientConfig{Address: server, Key: key})
	if err != nil {
		return nil, err
	}
	return relay.Runs(client), nil
}
