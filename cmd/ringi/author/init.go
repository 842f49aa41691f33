package author

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/workflow/schema"
)

// templates are the beginnings that ringi init copies, a directory each: a
// definition without problems, its scenarios, and how to run it.
//
//go:embed template
var templates embed.FS

// schemaFile is the schema for editors beside a definition; the first line of
// every template names it.
const schemaFile = "ringi.schema.json"

// templateNames are the templates with what each shows, the simplest first.
func templateNames() [][2]string {
	return [][2]string{
		{"approval", "a purchase that one or two people approve; needs no worker"},
		{"event", "a sign-up that waits, reminds and gives up; needs no worker"},
		{"http", "a refund by calls over HTTP, which the server makes itself"},
		{"saga", "a trip that is booked whole or undone; its worker is yours"},
	}
}

func (p program) initCommand() *cobra.Command {
	var name string
	var list bool
	cmd := &cobra.Command{
		Use: "init [DIR]", Short: "Begin a definition from a template", Args: cli.Between(0, "DIR"),
		Long: `Writes a definition with its scenarios, the schema for editors and a README into
DIR, by default the directory that one is in: a beginning that passes ringi check and
ringi test. No file is overwritten.`,
		Example: `  ringi init --list
  ringi init trip --template saga`,
		RunE: func(_ *cobra.Command, args []string) error {
			if list {
				return p.listTemplates()
			}
			return p.initialise(slices.Concat(args, []string{"."})[0], name)
		},
	}
	cmd.Flags().StringVar(&name, "template", templateNames()[0][0], "which one; --list names them")
	cmd.Flags().BoolVar(&list, "list", false, "list the templates and write nothing")
	return cmd
}

func (p program) listTemplates() error {
	type template struct {
		Name  string `json:"name"`
		About string `json:"about"`
	}
	out := struct {
		Templates []template `json:"templates"`
	}{}
	t := cli.Table{Head: []string{"TEMPLATE", "WHAT"}}
	for _, n := range templateNames() {
		out.Templates = append(out.Templates, template{n[0], n[1]})
		t.Row(n[0], n[1])
	}
	return p.Print(out, t)
}

// initialise writes the files of a template if none of them is there yet.
func (p program) initialise(dir, name string) error {
	names := templateNames()
	if !slices.ContainsFunc(names, func(n [2]string) bool { return n[0] == name }) {
		return cli.Usage("ringi init --list names them", "there is no template %q", name)
	}
	files, err := filesOf(name)
	if err != nil {
		return err
	}
	if info, err := os.Stat(p.Path(dir)); err == nil && !info.IsDir() {
		return cli.Usage("name a directory, which may be a new one", "%s is a file", dir)
	}
	for file := range files {
		if _, err := os.Lstat(p.Path(filepath.Join(dir, file))); !errors.Is(err, fs.ErrNotExist) {
			return &cli.Ending{
				Code: cli.ExitConflict, Message: fmt.Sprintf("%s exists already, and nothing was written", filepath.Join(dir, file)),
				Hint: "name another directory, as in ringi init " + name,
			}
		}
	}
	if err := os.MkdirAll(p.Path(dir), 0o755); err != nil { //nolint:gosec // the files are for everybody, like those of a checkout
		return err
	}
	out := struct {
		Template string   `json:"template"`
		Files    []string `json:"files"`
	}{Template: name}
	var t cli.Table
	for file, text := range files {
		if err := writeNew(p.Path(filepath.Join(dir, file)), text); err != nil {
			return err
		}
		out.Files = append(out.Files, filepath.Join(dir, file))
	}
	slices.Sort(out.Files)
	for _, file := range out.Files {
		t.Row(file)
	}
	if err := p.Print(out, t); err != nil {
		return err
	}
	if !p.JSON() {
		p.Say("%s says how to try it", filepath.Join(dir, "README.md"))
	}
	return nil
}

// filesOf are the files of a template by their names.
func filesOf(name string) (map[string][]byte, error) {
	dir := path.Join("template", name)
	entries, err := templates.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{schemaFile: schema.JSON()}
	for _, e := range entries {
		if files[e.Name()], err = templates.ReadFile(path.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// writeNew writes a file that does not exist yet.
func writeNew(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // for everybody, like the files of a checkout
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
