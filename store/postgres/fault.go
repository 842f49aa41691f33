package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ringiflow/ringi/store"
)

var (
	// errCondition ends the pipeline form of a batch: a condition failed, and
	// which one is for the careful form to say.
	errCondition = errors.New("postgres: a condition of the batch failed")
	// errEncode says that a row cannot be written as JSON.
	errEncode = errors.New("postgres: row cannot be encoded")
	errClosed = errors.New("postgres: it is closed")
)

// fault is what an error of the database means.
type fault int

const (
	faultAway      fault = iota // nothing can be done now; later perhaps
	faultBad                    // the statement or its values can never work
	faultCondition              // a condition of a batch
	faultAgain                  // the same transaction may work at once
	faultStandby                // this server does not take writes: another may
	faultLocked                 // somebody else holds a lock for longer than lockTime
	faultUnnamed                // the server does not keep our prepared statements
)

// The codes of PostgreSQL that are asked for by name.
const (
	codeDivision    = "22012"
	codeUnique      = "23505"
	codeReadOnly    = "25006"
	codeRecovery    = "55000" // "recovery is in progress"
	codeNoStatement = "26000"
	codeStatement   = "42P05" // a prepared statement of this name exists
	codeSerialize   = "40001"
	codeDeadlock    = "40P01"
	codeTableExists = "42P07"
	codeTypeExists  = "42710"
	codeNoTable     = "42P01"
	codeLock        = "55P03"
)

// faultOf tells what an error of the database means. Classes 22 and 23 are
// values that break a type or a constraint, 54 are values that are too big.
func faultOf(err error) fault {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return faultAway
	}
	switch e.Code {
	case codeDivision:
		return faultCondition
	case codeUnique:
		if e.ConstraintName == "log_pkey" || e.ConstraintName == "run_key" || e.ConstraintName == "run_pkey" {
			return faultCondition
		}
	case codeSerialize, codeDeadlock:
		return faultAgain
	case codeReadOnly, codeRecovery:
		return faultStandby
	case codeLock:
		return faultLocked
	case codeNoStatement, codeStatement:
		return faultUnnamed
	}
	switch {
	case strings.HasPrefix(e.Code, "22"), strings.HasPrefix(e.Code, "23"), strings.HasPrefix(e.Code, "54"):
		return faultBad
	}
	return faultAway
}

// aborted reports whether an error says that the transaction was rolled back:
// the server said so and still talks to us. Everything else leaves open what
// became of it; also FATAL, which may come when the work was done already.
func aborted(c *conn, err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.SeverityUnlocalized == "ERROR" && !c.pg.IsClosed()
}

// sent makes the error of a commit an answer of ours: store.ErrUnavailable when
// it certainly did nothing, else store.ErrDoubt.
func sent(c *conn, err error) error {
	if err == nil {
		return nil
	}
	if aborted(c, err) || pgconn.SafeToRetry(err) {
		return away(err)
	}
	return fmt.Errorf("%w: %w", store.ErrDoubt, err)
}

// away makes an error of the database store.ErrUnavailable and leaves our own
// answers alone, no error among them.
func away(err error) error {
	if err == nil {
		return nil
	}
	var bad *store.BadWrite
	if errors.As(err, &bad) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotFound) || errors.Is(err, errCondition) {
		return err
	}
	if faultOf(err) == faultLocked {
		return fmt.Errorf("%w: %w", store.ErrLocked, err)
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// hasConstraint reports whether an error is the breach of a constraint.
func hasConstraint(err error, name string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == codeUnique && e.ConstraintName == name
}
