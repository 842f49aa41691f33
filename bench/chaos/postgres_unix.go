//go:build unix

package chaos

import (
	"context"

	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// startDatabase starts a PostgreSQL server for this rig alone.
func startDatabase(ctx context.Context) (*server, error) {
	pg, err := pgtest.Start(ctx, pgtest.Config{})
	if err != nil {
		return nil, err
	}
	return &server{url: pg.URL("postgres"), crash: pg.Crash, resume: pg.Resume, close: pg.Close}, nil
}
