package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"

	"github.com/ringiflow/ringi/child"
)

// rowsTold is how many rows that are wrong are told one by one.
const rowsTold = 20

// replay folds the log of every run again, as ringi replay --all does, and
// returns how many rows are not what their log says. The server has ended.
func (w *world) replay(ctx context.Context, story *teller) (*int, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, w.binary, "replay", "--all", "--json", "--database", w.database())
	cmd.Dir, cmd.Env = w.inner, child.Environment(cmd.Environ())
	cmd.Stdout, cmd.Stderr = &out, &said
	ended := cmd.Run() // with mismatches it exits 1, and prints them all the same
	var replayed struct {
		Runs       int   `json:"runs"`
		Events     int64 `json:"events"`
		Mismatches []struct {
			Run  string `json:"run"`
			What string `json:"what"`
			Seq  int64  `json:"seq"`
		} `json:"mismatches"`
	}
	if err := json.Unmarshal(out.Bytes(), &replayed); err != nil {
		return nil, fmt.Errorf("ringi replay --all did not tell what it found: %w; it said: %s", errors.Join(err, ended), said.Bytes())
	}
	n := len(replayed.Mismatches)
	found := "everything beside them follows from them"
	if n > 0 {
		found = amount(n, "row") + " beside them not following from them"
	}
	story.tell("replayed the logs of %d runs, %d events: %s", replayed.Runs, replayed.Events, found)
	for _, m := range replayed.Mismatches[:min(n, rowsTold)] {
		story.tell("  run %s: %s at event %d", m.Run, m.What, m.Seq)
	}
	return &n, nil
}
