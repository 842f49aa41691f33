package bench

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// barePins keep the planner from reading whole tables, as the store does on
// its connections.
const barePins = `set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set enable_bitmapscan = off; set jit = off`

// barePostgres writes with pgx, a pipeline per transaction, one statement for
// all rows of a kind.
type barePostgres struct {
	ctx  context.Context // of its making: a measurement is interrupted as a whole
	conn *pgx.Conn
	text [bareKinds]string
}

func openBarePostgres(ctx context.Context, url string) (bareWriter, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	w := &barePostgres{ctx: ctx, conn: conn}
	for kind, s := range bareStatements {
		w.text[kind] = s.postgres()
	}
	_, err = conn.Exec(ctx, barePins)
	return w, err
}

func (w *barePostgres) close() error { return w.conn.Close(context.WithoutCancel(w.ctx)) }

// write sends everything as one message, which is one transaction.
func (w *barePostgres) write(batch [][]bareRow) error {
	var kinds [bareKinds][]*bareRow
	for _, rows := range batch {
		for i := range rows {
			kinds[rows[i].kind] = append(kinds[rows[i].kind], &rows[i])
		}
	}
	message := &pgx.Batch{}
	for kind, rows := range kinds {
		if len(rows) > 0 {
			message.Queue(w.text[kind], arraysOf(rows)...)
		}
	}
	return w.conn.SendBatch(w.ctx, message).Close()
}

// arraysOf turns rows of one kind into columns.
func arraysOf(rows []*bareRow) []any {
	arrays := make([]any, len(rows[0].values))
	for i, v := range rows[0].values {
		switch v.(type) {
		case int64:
			arrays[i] = arrayOf(rows, i, func(v any) int64 { n, _ := v.(int64); return n })
		case string:
			arrays[i] = arrayOf(rows, i, func(v any) string { s, _ := v.(string); return s })
		case []byte:
			arrays[i] = arrayOf(rows, i, func(v any) []byte { b, _ := v.([]byte); return b })
		case bool:
			arrays[i] = arrayOf(rows, i, func(v any) bool { b, _ := v.(bool); return b })
		case [16]byte:
			arrays[i] = arrayOf(rows, i, func(v any) pgtype.UUID { u, ok := v.([16]byte); return pgtype.UUID{Bytes: u, Valid: ok} })
		case time.Time:
			arrays[i] = arrayOf(rows, i, func(v any) pgtype.Timestamptz {
				t, _ := v.(time.Time)
				return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
			})
		}
	}
	return arrays
}

func arrayOf[T any](rows []*bareRow, column int, of func(any) T) []T {
	list := make([]T, len(rows))
	for i, r := range rows {
		list[i] = of(r.values[column])
	}
	return list
}
