package author

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/workflow"
)

// A sourceFile is a definition as the user has it.
type sourceFile struct {
	name string
	text []byte
}

// Checked is what check --json prints.
type Checked struct {
	Problems []workflow.Problem `json:"problems"`
	Errors   int                `json:"errors"`
	Warnings int                `json:"warnings"`
}

func (c *Checked) add(problems []workflow.Problem) {
	c.Problems = append(c.Problems, problems...)
	for _, p := range problems {
		if p.Severity == workflow.SeverityError {
			c.Errors++
		} else {
			c.Warnings++
		}
	}
}

// err is the error of a definition with problems; findings are none.
func (c *Checked) err() error {
	if c.Errors == 0 {
		return nil
	}
	return &cli.Ending{Code: cli.ExitProblems}
}

func (p program) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check FILE...", Short: "Check definitions, as publishing does", Args: cli.AtLeastOne("FILE"),
		Long: `Checks definitions as publishing does, without a server. Exits with 6 if one has
errors; findings of severity warning are shown and accepted. The quotas of steps,
depth and width are the defaults, which the operator of a server may have raised;
--quota-steps and its like are the same settings as there.
- is standard input.`,
		RunE: func(_ *cobra.Command, args []string) error {
			files, missing := p.readDefinitions(args)
			out := checkFiles(files, func(name string, text []byte) (*workflow.Definition, []workflow.Problem) {
				return workflow.Check(name, text, p.Quotas())
			})
			var err error
			if p.JSON() {
				err = p.PrintJSON(out)
			} else {
				err = writeProblems(p.Stdout, files, out, p.Colours())
			}
			if missing != nil { // what could be read was checked all the same
				return errors.Join(missing, err)
			}
			return errors.Join(err, out.err())
		},
	}
	cli.SettingFlags(cmd, cli.QuotaSettings()...)
	return cmd
}

// readSources reads files; - is standard input. Those that can be read are
// returned also when others cannot.
func (p program) readSources(names []string) ([]sourceFile, error) {
	var files []sourceFile
	var errs []error
	for _, name := range names {
		f, err := p.readSource(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		files = append(files, f)
	}
	return files, errors.Join(errs...)
}

// readDefinitions is readSources for definitions. A file of scenarios among them is
// left out with a word: whoever types *.yaml means the definitions.
func (p program) readDefinitions(names []string) ([]sourceFile, error) {
	files, err := p.readSources(names)
	var definitions, scenarios []sourceFile
	for _, f := range files {
		if f.holdsScenarios() {
			scenarios = append(scenarios, f)
		} else {
			definitions = append(definitions, f)
		}
	}
	if len(scenarios) == len(names) {
		return nil, noDefinition(names[0])
	}
	for _, f := range scenarios {
		p.Say("%s was left out: it holds scenarios, which ringi test plays", f.name)
	}
	return definitions, err
}

func noDefinition(name string) error {
	return cli.Usage("ringi test "+name+" plays them", "%s holds scenarios and no definition", name)
}

// readSource reads one file. One byte above the limit of a definition is enough
// for the checker to say that it is too large.
func (p program) readSource(name string) (sourceFile, error) {
	in := p.Stdin
	if name != "-" {
		if info, err := os.Stat(p.Path(name)); err == nil && info.IsDir() {
			return sourceFile{}, cli.Usage("name the files in it, as in "+filepath.Join(name, "order.yaml"), "%s is a directory", name)
		}
		f, err := os.Open(p.Path(name))
		if err != nil {
			return sourceFile{}, err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, workflow.MaxSource+1))
	if err != nil {
		return sourceFile{}, fmt.Errorf("read %s: %w", name, err)
	}
	return sourceFile{name, text}, nil
}

func checkFiles(files []sourceFile, check func(name string, text []byte) (*workflow.Definition, []workflow.Problem)) Checked {
	out := Checked{Problems: []workflow.Problem{}}
	for _, f := range files {
		_, problems := check(f.name, f.text)
		out.add(problems)
	}
	return out
}

// writeProblems prints problems for a person: the place, what is wrong there,
// the line with a mark under the place, and what to write instead.
func writeProblems(w io.Writer, files []sourceFile, c Checked, colours bool) error {
	var b strings.Builder
	for _, p := range c.Problems {
		word := string(p.Severity)
		if code := cli.ColourOf(word); colours && code != "" {
			word = "\x1b[" + code + "m" + word + "\x1b[0m"
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s %s: %s\n", p.File, p.Line, p.Column, word, p.ID, cli.Plain(p.Message))
		for _, f := range files {
			if f.name == p.File {
				b.WriteString(excerpt(f.text, p.Line, p.Column))
			}
		}
		if p.Suggestion != "" {
			fmt.Fprintf(&b, "    = %s\n", cli.Plain(p.Suggestion))
		}
	}
	switch {
	case len(files) == 0: // there was nothing to read
	case c.Errors+c.Warnings == 0 && len(files) == 1:
		fmt.Fprintf(&b, "%s: no problems\n", files[0].name)
	case c.Errors+c.Warnings == 0:
		fmt.Fprintf(&b, "%d files: no problems\n", len(files))
	default:
		fmt.Fprintf(&b, "%s, %s; ringi explain ID shows how it is meant\n", cli.Counted(c.Errors, "error"), cli.Counted(c.Warnings, "warning"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// widestExcerpt is how much of a line is shown, in characters: more does not
// fit beside its number.
const widestExcerpt = 160

// excerpt is a line of the text with a mark under the column.
func excerpt(text []byte, line, column int) string {
	lines := bytes.Split(text, []byte("\n"))
	if line < 1 || line > len(lines) {
		return ""
	}
	content := []rune(strings.ToValidUTF8(string(bytes.TrimRight(lines[line-1], "\r")), "?"))
	at := min(max(column-1, 0), len(content))
	from := 0
	if at > widestExcerpt-20 {
		from = at - (widestExcerpt - 20)
	}
	shown := content[from:min(len(content), from+widestExcerpt)]
	number := fmt.Sprintf("%4d", line)
	return fmt.Sprintf("%s | %s\n%s | %s^\n", number, cli.Plain(string(shown)),
		strings.Repeat(" ", utf8.RuneCountInString(number)), strings.Repeat(" ", at-from))
}

func (p program) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "explain [ID]", Short: "Explain a rule of the checker with a wrong and a right example", Args: cli.Between(0, "ID"),
		Example: "  ringi explain RG0001",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return p.listRules()
			}
			id := strings.ToUpper(args[0])
			rule, ok := workflow.Explain(id)
			if !ok {
				return &ringi.Error{Code: ringi.CodeNotFound, Message: fmt.Sprintf("there is no rule %s", id), Hint: "ringi explain lists them"}
			}
			if p.JSON() {
				return p.PrintJSON(rule)
			}
			_, err := fmt.Fprintf(p.Stdout, "%s (%s): %s\n\n%s\n\nwrong:\n\n%s\nright:\n\n%s", rule.ID, rule.Severity, rule.Title, rule.Why, indented(rule.Wrong), indented(rule.Right))
			return err
		},
	}
}

func (p program) listRules() error {
	out := struct {
		Rules []workflow.Rule `json:"rules"`
	}{workflow.Rules()}
	t := cli.Table{Head: []string{"ID", "SEVERITY", "RULE"}}
	for _, r := range out.Rules {
		t.Row(r.ID, string(r.Severity), r.Title)
	}
	return p.Print(out, t)
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + line)
	}
	if !strings.HasSuffix(text, "\n") {
		b.WriteString("\n")
	}
	return b.String()
}

// publishedFile is one file that was published.
type publishedFile struct {
	File    string `json:"file"`
	Name    string `json:"name"`
	Version int    `json:"version"`
	Digest  string `json:"digest"`
	Created bool   `json:"created"`
}

// Published is what publish --json prints.
type Published struct {
	Published []publishedFile `json:"published"`
	Checked
}

func (p program) publishCommand() *cobra.Command {
	return &cobra.Command{
		Use: "publish FILE...", Short: "Publish definitions as new versions", Args: cli.AtLeastOne("FILE"),
		Long: "Checks all files and, if none has errors, publishes them. A file that was published\nbefore stays the version that it is.",
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := p.readDefinitions(args)
			if err != nil {
				return err
			}
			return p.publish(cmd.Context(), files)
		},
	}
}

func (p program) publish(ctx context.Context, files []sourceFile) error {
	out := Published{Published: []publishedFile{}, Checked: checkFiles(files, workflow.Parse)} // the quotas are the server's
	if out.Errors > 0 {
		return p.printPublished(files, out)
	}
	svc, err := p.Service()
	if err != nil {
		return err
	}
	for _, f := range files {
		pub, err := svc.Publish(ctx, ringi.Publication{Tenant: ringi.DefaultTenant, File: f.name, Source: f.text})
		if err != nil {
			return errors.Join(err, p.printPublished(files, out))
		}
		if pub.Version == 0 { // a newer server, or a quota of its own
			out.Checked = Checked{Problems: []workflow.Problem{}}
			out.add(problemsOf(pub.Problems))
			return p.printPublished(files, out)
		}
		out.Published = append(out.Published, publishedFile{f.name, pub.Name, pub.Version, pub.Digest, pub.Created})
	}
	return p.printPublished(files, out)
}

func problemsOf(problems []ringi.Problem) []workflow.Problem {
	out := make([]workflow.Problem, len(problems))
	for i, p := range problems {
		out[i] = workflow.Problem{
			File: p.File, Line: p.Line, Column: p.Column, ID: p.ID,
			Severity: workflow.Severity(p.Severity), Message: p.Message, Suggestion: p.Suggestion,
		}
	}
	return out
}

// printPublished prints what was published, and the problems to the person.
func (p program) printPublished(files []sourceFile, out Published) error {
	if p.JSON() {
		return errors.Join(p.PrintJSON(out), out.err())
	}
	if len(out.Problems) > 0 {
		if err := writeProblems(p.Stderr, files, out.Checked, false); err != nil {
			return err
		}
	}
	var t cli.Table
	for _, f := range out.Published {
		how := "published"
		if !f.Created {
			how = "exists"
		}
		t.Row(f.Name, fmt.Sprintf("version %d", f.Version), how, f.Digest)
	}
	return errors.Join(t.Write(p.Stdout, p.Colours()), out.err())
}
