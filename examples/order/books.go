package order

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The files that Verify reads beside the four books.
const (
	OrdersName = "orders.jsonl" // the orders that were fed, as OrdersFile returns them
	RunsName   = "runs.json"    // a JSON array of Run
)

// A Run is what became of the run of one order, as the engine told it.
type Run struct {
	OrderID string `json:"orderId"`
	Run     string `json:"run"`    // the id of the run
	Status  string `json:"status"` // its status at the end

	// Unknown names the steps of the run whose outcome stayed unknown. With
	// MailStep among them the order may have no mail.
	Unknown []string `json:"unknown,omitempty"`
}

// BookPath returns where the book of a service lies in dir.
func BookPath(dir, service string) string { return filepath.Join(dir, service+".db") }

// SaveOrders writes the first n embedded orders into dir, where Verify finds
// them; 0 is all of them.
func SaveOrders(dir string, n int) error {
	if err := os.WriteFile(filepath.Join(dir, OrdersName), OrdersFile(n), 0o600); err != nil {
		return fmt.Errorf("keep the orders: %w", err)
	}
	return nil
}

// SaveRuns writes runs.json into dir, where Verify finds it.
func SaveRuns(dir string, runs []Run) error {
	data, err := json.MarshalIndent(runs, "", "  ")
	if err != nil {
		return fmt.Errorf("keep the runs: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, RunsName), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("keep the runs: %w", err)
	}
	return nil
}

// evidence is everything that Verify judges by.
type evidence struct {
	lines   []Line
	runs    map[string][]Run          // by order
	effects map[string]map[string]int // calls with effect, by order and operation
	twice   []twice
	strange []oddity // rows that no honest service writes
}

// oddity is a row that no honest service writes.
type oddity struct{ orderID, text string }

// twice is an operation that had its effect more than once under one key.
type twice struct {
	orderID, op, key string
	times            int
}

func gather(ctx context.Context, dir string) (*evidence, error) {
	e := &evidence{runs: map[string][]Run{}, effects: map[string]map[string]int{}}
	if err := e.readOrders(dir); err != nil {
		return nil, err
	}
	if err := e.readRuns(dir); err != nil {
		return nil, err
	}
	for _, service := range ServiceNames() {
		if err := e.readBook(ctx, service, BookPath(dir, service)); err != nil {
			return nil, fmt.Errorf("read the book of %s: %w", service, err)
		}
	}
	return e, nil
}

func (e *evidence) readOrders(dir string) (err error) {
	file, err := os.Open(filepath.Join(dir, OrdersName))
	if err != nil {
		return fmt.Errorf("read the orders: %w; give the directory that was kept with --keep", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	e.lines, err = ParseLines(file)
	return err
}

func (e *evidence) readRuns(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, RunsName))
	if err != nil {
		return fmt.Errorf("read the runs: %w; give the directory that was kept with --keep", err)
	}
	var runs []Run
	if err := json.Unmarshal(data, &runs); err != nil {
		return fmt.Errorf("read %s: %w", RunsName, err)
	}
	for _, r := range runs {
		e.runs[r.OrderID] = append(e.runs[r.OrderID], r)
	}
	return nil
}

// readBook reads one book without changing it.
func (e *evidence) readBook(ctx context.Context, service, path string) (err error) {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%w; give the directory that was kept with --keep", err)
	}
	db, err := openSQLite(path, "mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := e.readRows(ctx, db, service); err != nil {
		return err
	}
	if err := e.readTwice(ctx, db); err != nil {
		return err
	}
	return e.readUndos(ctx, db, service)
}

// readRows counts the effects and notes the rows that no honest service writes.
func (e *evidence) readRows(ctx context.Context, db *sql.DB, service string) error {
	return each(ctx, db, `SELECT rowid, op, order_id, effect, at FROM calls`, func(rows *sql.Rows) error {
		var row, effect int64
		var op, orderID, at string
		if err := rows.Scan(&row, &op, &orderID, &effect, &at); err != nil {
			return err
		}
		odd := func(format string, args ...any) {
			where := fmt.Sprintf("%s.db row %d: ", service, row)
			e.strange = append(e.strange, oddity{orderID, where + fmt.Sprintf(format, args...)})
		}
		writes, known := operationOf(service, op)
		switch {
		case !known:
			odd("%s has no operation %q", service, op)
			return nil
		case effect != 0 && effect != 1:
			odd("effect is %d, and can only be 0 or 1", effect)
		case effect == 1 && !writes:
			odd("%s only reads, and is said to have had an effect", op)
		}
		if _, err := time.Parse(time.RFC3339, at); err != nil {
			odd("at is %q, which is no time", at)
		}
		if effect == 0 {
			return nil
		}
		if e.effects[orderID] == nil {
			e.effects[orderID] = map[string]int{}
		}
		e.effects[orderID][op]++
		return nil
	})
}

func (e *evidence) readTwice(ctx context.Context, db *sql.DB) error {
	const query = `SELECT op, key, min(order_id), sum(effect) FROM calls GROUP BY op, key HAVING sum(effect) > 1 ORDER BY min(rowid)`
	return each(ctx, db, query, func(rows *sql.Rows) error {
		var t twice
		if err := rows.Scan(&t.op, &t.key, &t.orderID, &t.times); err != nil {
			return err
		}
		e.twice = append(e.twice, t)
		return nil
	})
}

// readUndos notes undos of what was never done under their key, and forward
// calls that had an effect after their undo.
func (e *evidence) readUndos(ctx context.Context, db *sql.DB, service string) error {
	forward, undo := undoOf(service)
	if undo == "" {
		return nil
	}
	const orphans = `SELECT rowid, key, order_id FROM calls AS u WHERE op = ? AND effect = 1
		AND NOT EXISTS (SELECT 1 FROM calls AS f WHERE f.op = ? AND f.key = u.key AND f.effect = 1)`
	const late = `SELECT rowid, key, order_id FROM calls AS f WHERE op = ? AND effect = 1
		AND EXISTS (SELECT 1 FROM calls AS u WHERE u.op = ? AND u.key = f.key AND u.rowid < f.rowid)`
	note := func(what string) func(*sql.Rows) error {
		return func(rows *sql.Rows) error {
			var row int64
			var key, orderID string
			if err := rows.Scan(&row, &key, &orderID); err != nil {
				return err
			}
			e.strange = append(e.strange, oddity{orderID, fmt.Sprintf("%s.db row %d, key %s: %s", service, row, key, what)})
			return nil
		}
	}
	return errors.Join(
		each(ctx, db, orphans, note(undo+" had an effect, and there was no "+forward+" under its key"), undo, forward),
		each(ctx, db, late, note(forward+" had an effect after its "+undo), forward, undo),
	)
}

// each runs query and hands every row to take.
func each(ctx context.Context, db *sql.DB, query string, take func(*sql.Rows) error, args ...any) (err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := take(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// operationOf tells whether the service has the operation, and whether it can
// have an effect.
func operationOf(service, op string) (writes, known bool) {
	switch service + " " + op {
	case Payment + " " + opFind, Shipping + " " + opLabel:
		return false, true
	case Stock + " " + opReserve, Stock + " " + opRelease,
		Payment + " " + opCharge, Payment + " " + opRefund,
		Shipping + " " + opBook, Shipping + " " + opCancel,
		Mail + " " + opSend:
		return true, true
	}
	return false, false
}

// undoOf returns the service's forward operation and the one that undoes it,
// both "" if it has none.
func undoOf(service string) (forward, undo string) {
	switch service {
	case Stock:
		return opReserve, opRelease
	case Payment:
		return opCharge, opRefund
	case Shipping:
		return opBook, opCancel
	}
	return "", ""
}
