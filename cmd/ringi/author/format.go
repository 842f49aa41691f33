package author

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/workflow/format"
)

// formatted is what fmt --json prints.
type formatted struct {
	Changed []string `json:"changed"` // the files whose layout is another
	Checked
}

type formatFlags struct{ write, check bool }

func (p program) formatCommand() *cobra.Command {
	var f formatFlags
	cmd := &cobra.Command{
		Use: "fmt FILE...", Short: "Lay definitions out in the usual way", Args: cli.AtLeastOne("FILE"),
		Long: `Lays definitions out: keys in their usual order, blocks indented by two, quotes
where YAML would misread a value without them. Comments stay, and what a
definition says does not change, nor does its digest. Without a flag the layout is
printed; -w writes it into the files, and --check names the files whose layout is
another and exits with 6. A file in JSON stays as it is. - is standard input.`,
		Example: `  ringi fmt order.yaml
  ringi fmt -w *.yaml
  ringi fmt --check *.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			if f.write && f.check {
				return cli.Usage("", "-w and --check exclude each other")
			}
			return p.format(args, f)
		},
	}
	cmd.Flags().BoolVarP(&f.write, "write", "w", false, "write the layout into the files, and name those that change")
	cmd.Flags().BoolVar(&f.check, "check", false, "change nothing; name the files whose layout is another, and exit with 6 if there are any")
	return cmd
}

func (p program) format(args []string, f formatFlags) error {
	files, missing := p.readSources(args)
	out := formatted{Changed: []string{}, Checked: checkFiles(nil, nil)}
	for _, file := range files {
		text, problems := format.File(file.name, file.text)
		out.add(problems)
		if len(problems) > 0 {
			continue
		}
		changed := !bytes.Equal(text, file.text)
		if changed {
			out.Changed = append(out.Changed, file.name)
		}
		if err := p.give(file.name, text, changed, f); err != nil {
			return err
		}
	}
	if err := p.printFormatted(files, out, f); err != nil {
		return err
	}
	if out.Errors == 0 && f.check && len(out.Changed) > 0 {
		return errors.Join(missing, &cli.Ending{Code: cli.ExitProblems})
	}
	return errors.Join(missing, out.err())
}

// give writes a layout to where the flags say.
func (p program) give(name string, text []byte, changed bool, f formatFlags) error {
	switch {
	case f.check, f.write && !changed:
		return nil
	case f.write && name != "-":
		return replaceFile(p.Path(name), text)
	case p.JSON():
		return nil
	}
	_, err := p.Stdout.Write(text)
	return err
}

// replaceFile writes a file anew, whole or not at all. A link stays one, and a
// file that may not be written is refused, although its directory would allow it.
func replaceFile(name string, text []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	old, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := old.Stat()
	if err = errors.Join(err, old.Close()); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	if err = errors.Join(err, next.Chmod(info.Mode().Perm()), next.Close()); err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	if err := os.Rename(next.Name(), name); err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}

// printFormatted names what changed where that is asked for, and what could not
// be laid out.
func (p program) printFormatted(files []sourceFile, out formatted, f formatFlags) error {
	if p.JSON() {
		return p.PrintJSON(out)
	}
	if f.check || f.write {
		for _, name := range out.Changed {
			if _, err := fmt.Fprintln(p.Stdout, name); err != nil {
				return err
			}
		}
	}
	if len(out.Problems) == 0 {
		return nil
	}
	return writeProblems(p.Stderr, files, out.Checked, false)
}
