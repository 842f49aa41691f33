package format_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/workflow"
	"github.com/ringiflow/ringi/workflow/format"
)

// files are all definitions of this repository that are YAML.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, pattern := range []string{"../rules/*/*.yaml", "../testdata/*.yaml", "../graph/testdata/*.yaml", "../build/testdata/*.yaml", "../../examples/*/*.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = src
		}
	}
	return out
}

// A layout says the same as before, keeps every comment, and is final.
func TestTheLayoutOfEveryFileSaysTheSame(t *testing.T) {
	laid, same := 0, 0
	for name, src := range files(t) {
		out, problems := format.File(name, src)
		if len(problems) > 0 {
			if d, _ := workflow.Parse(name, src); d != nil {
				t.Errorf("%s is right and cannot be laid out: %v", name, problems)
			}
			continue
		}
		laid++
		if string(out) == string(src) {
			same++
		}
		again, problems := format.File(name, out)
		if string(again) != string(out) {
			t.Errorf("%s: a second time changes the layout again: %v\n%s\n---\n%s", name, problems, out, again)
		}
		before, _ := workflow.Parse(name, src)
		after, problems := workflow.Parse(name, out)
		switch {
		case before == nil:
		case after == nil:
			t.Errorf("%s is no definition any more: %v", name, problems)
		case before.Digest != after.Digest:
			t.Errorf("%s: the digest was %s and is %s", name, before.Digest, after.Digest)
		}
		if strings.Count(string(src), "# ") > strings.Count(string(out), "# ") {
			t.Errorf("%s lost a comment:\n%s", name, out)
		}
	}
	t.Logf("%d files, %d were laid out so already", laid, same)
}

// Comments stay wherever people put them.
func TestCommentsStayWhereverTheyStand(t *testing.T) {
	all := files(t)
	names := slices.Sorted(maps.Keys(all))
	const seed = 11
	rnd := rand.New(rand.NewPCG(seed, 0))
	tried, refused := 0, 0
	for range 600 {
		name := names[rnd.IntN(len(names))]
		before, _, problems := workflow.Document(name, all[name])
		if len(problems) > 0 {
			continue
		}
		src := commented(rnd, string(all[name]))
		with, _, problems := workflow.Document(name, []byte(src))
		if len(problems) > 0 || string(with) != string(before) {
			continue // it fell into a text
		}
		tried++
		out, problems := format.File(name, []byte(src))
		if len(problems) > 0 {
			if refused++; refused < 4 {
				t.Logf("seed %d, %s: %s\n%s", seed, name, problems[0].Message, src)
			}
			continue
		}
		again, _ := format.File(name, out)
		if string(again) != string(out) {
			t.Fatalf("seed %d, %s: a second time changes the layout again\n%s\n---\n%s\n---\n%s", seed, name, src, out, again)
		}
	}
	if tried < 200 || refused > tried/50 {
		t.Errorf("of %d files with comments %d were refused", tried, refused)
	}
}

// Blocks of text are laid out whatever their headers, margins and blank lines are,
// and whatever comment stands behind them.
func TestBlocksOfTextAreLaidOut(t *testing.T) {
	const seed = 3
	rnd := rand.New(rand.NewPCG(seed, 0))
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	tried := 0
	for range 4000 {
		var lines string
		for range rnd.IntN(6) {
			lines += pick("", "    a", "      b", "  ", "    ", "      ", "        ", "    # c", "    d: e", "     f ", "    \tg") + "\n"
		}
		header := pick("|", ">") + pick("", "+", "-", "2", "2+", "1-", "4")
		src := pick("ringi: v1\nname: n\ndescription: ", "ringi: v1\nname: n\nlabels:\n a: ") + header + "\n" + lines + pick("", "# end\n", "steps: []\n")
		if _, _, problems := workflow.Document("f.yaml", []byte(src)); len(problems) > 0 {
			continue
		}
		tried++
		out, problems := format.File("f.yaml", []byte(src))
		if again, _ := format.File("f.yaml", out); len(problems) > 0 || string(again) != string(out) {
			t.Errorf("seed %d: %v\n%q\n%q\n%q", seed, problems, src, out, again)
		}
	}
	if tried < 1000 {
		t.Errorf("only %d could be read", tried)
	}
}

// commented puts some comments into a text, behind lines and between them.
func commented(rnd *rand.Rand, text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range 1 + rnd.IntN(3) {
		at := rnd.IntN(len(lines))
		note := fmt.Sprintf("# note %d", i)
		if rnd.IntN(2) == 0 {
			lines[at] += "  " + note
			continue
		}
		indent := len(lines[at]) - len(strings.TrimLeft(lines[at], " "))
		lines = slices.Insert(lines, at, strings.Repeat(" ", indent)+note)
	}
	return strings.Join(lines, "\n") + "\n"
}
