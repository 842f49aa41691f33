package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

const (
	// IDLength is the length of a whole run id: nothing is looked up then.
	IDLength = 36
	// shortestID is the shortest abbreviation of an id that is looked up: fewer
	// letters fit too many runs to be meant.
	shortestID = 4
	// most pages of runs are searched for an abbreviated id.
	idPages = 200
)

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
	return LookUp(text, func(q ringi.RunQuery) ([]ringi.RunID, string, error) {
		page, err := svc.List(ctx, q)
		runs := make([]ringi.RunID, len(page.Runs))
		for i, r := range page.Runs {
			runs[i] = r.Run
		}
		return runs, page.Next, err
	})
}

// LookUp finds a run in lists of runs. An abbreviated id needs them all, a key
// has an index.
func LookUp(text string, list func(ringi.RunQuery) (runs []ringi.RunID, next string, err error)) (ringi.RunID, error) {
	text = strings.TrimSpace(text)
	if id := strings.ToLower(text); isIDLike(id) {
		if len(id) == IDLength {
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
	return len(id) >= shortestID && len(id) <= IDLength && strings.Trim(id, "0123456789abcdef-") == ""
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
		return "", &cli.Ending{Code: cli.ExitNotFound, Message: fmt.Sprintf("there are too many runs to be sure about the abbreviated id %s", id), Hint: "write the whole id"}
	case len(found) == 0:
		return "", nil
	}
	return found[0], nil
}

func ambiguous(text string, runs []ringi.RunID) error {
	return &cli.Ending{Code: cli.ExitNotFound, Message: fmt.Sprintf("%s fits more than one run, as %s and %s", text, runs[0], runs[1]), Hint: "write more of the id; its end differs most"}
}
