package sqlite

import (
	"database/sql"
	"path/filepath"
)

// Bare opens a database file that exists with one connection and the settings
// that the store writes with, and nothing of the store around it: to measure
// what the file and the driver can do at best. The caller closes it.
func Bare(path string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return openPool(path, DefaultBusyTimeout, 1, false)
}
