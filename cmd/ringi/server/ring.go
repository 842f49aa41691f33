package server

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/access"
	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// MadeKey is somebody for whom a server on this machine keeps a key itself.
type MadeKey struct {
	File string // holds the key, mode 0600
	Who  access.Principal
}

// Admin is who starts a server without keys: the person at this machine.
func Admin(database string) MadeKey {
	return MadeKey{database + cli.AdminKeySuffix, access.Principal{ID: "admin", Kind: ringi.Person, Scopes: []string{api.ScopeAdmin}}}
}

// makeKeys makes the keys that are missing, and writes the file of their lines
// that the server reads. The files of the keys are touched, so that of several
// the one of the server that began last is found first.
func makeKeys(file string, now time.Time, keys ...MadeKey) error {
	lines := []string{"# Made by ringi at every start. For keys of your own: ringi keys new, and ringi serve --keys FILE."}
	for _, k := range keys {
		line, err := k.line(now)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	return writePrivate(file, strings.Join(lines, "\n")+"\n")
}

// line is the line of the key, which is made if it is missing. Of servers that
// start at once in one directory one makes it, and all use it.
func (k MadeKey) line(now time.Time) (string, error) {
	fresh, line, err := access.NewKey(k.Who)
	if err != nil {
		return "", err
	}
	key, err := cli.ReadKey(k.File)
	if errors.Is(err, fs.ErrNotExist) {
		if err = firstPrivate(k.File, fresh+"\n"); err == nil {
			return line, nil
		}
		if errors.Is(err, fs.ErrExist) {
			key, err = cli.ReadKey(k.File)
		}
	}
	if err != nil {
		return "", err
	}
	if err := os.Chmod(k.File, 0o600); err != nil {
		return "", fmt.Errorf("keep the key to yourself: %w", err)
	}
	if err := os.Chtimes(k.File, now, now); err != nil {
		return "", err
	}
	return strings.ReplaceAll(line, hashOf(fresh), hashOf(key)), nil
}

// hashOf is how a file of keys holds a key.
func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// writePrivate writes a file that only its owner may read, whole or not at all.
func writePrivate(name, text string) error {
	next, err := besidePrivate(name, text)
	if err != nil {
		return err
	}
	return os.Rename(next, name)
}

// firstPrivate is writePrivate unless the file is there, which is fs.ErrExist.
func firstPrivate(name, text string) error {
	next, err := besidePrivate(name, text)
	if err != nil {
		return err
	}
	return errors.Join(os.Link(next, name), os.Remove(next))
}

// besidePrivate writes the text to a new file beside the one of the name.
func besidePrivate(name, text string) (next string, err error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".new*") // for its owner alone
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// whoBy is the edge: who sends a request, from its key alone.
func whoBy(keys *access.Keys) func(*http.Request) (api.Identity, error) {
	return func(r *http.Request) (api.Identity, error) {
		who, err := keys.Who(r)
		if err != nil {
			return api.Identity{}, err
		}
		return api.Identity{Actor: who.Actor(), Tenant: who.Tenant, Scopes: who.Scopes}, nil
	}
}
