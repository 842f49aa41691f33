package ringi_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The laws of this repository. Each is a function of its source text, so that
// each can be shown to fail: beside the law stand a wrong and a right example.
// A finding says what to do instead; a law that is in the way is changed here,
// with its reason, and never worked around.

// ourModule is the path under which our packages import each other.
const ourModule = "github.com/ringiflow/ringi"

// law is one rule about the text of the repository.
type law struct {
	name     string
	check    func(*lawTree) []string // findings, in the order of the files
	examples []lawExample
}

// lawExample is a small repository. want is a part of the finding that it must
// lead to, or empty if the law must be content with it.
type lawExample struct {
	files map[string]string
	want  string
}

func allLaws() []law {
	return slices.Concat(importLaws(), purityLaws(), docLaws(), budgetLaws(), forbiddenLaws(), shapeLaws(), textLaws())
}

func TestLaws(t *testing.T) {
	tree := lawTreeOfRepository(t)
	for _, l := range allLaws() {
		t.Run(l.name, func(t *testing.T) {
			for _, finding := range l.check(tree) {
				t.Error(finding)
			}
		})
	}
}

func TestLawsHoldWrongFromRight(t *testing.T) {
	for _, l := range allLaws() {
		t.Run(l.name, func(t *testing.T) {
			wrong, right := 0, 0
			for i, example := range l.examples {
				findings := l.check(lawTreeOfExample(t, example.files))
				all := strings.Join(findings, "\n")
				if example.want == "" {
					right++
					if all != "" {
						t.Errorf("example %d is right, yet: %s", i, all)
					}
					continue
				}
				wrong++
				if !strings.Contains(all, example.want) {
					t.Errorf("example %d: findings %q do not say %q", i, all, example.want)
				}
			}
			if wrong == 0 || right == 0 {
				t.Errorf("%d wrong and %d right examples: a law needs at least one of each", wrong, right)
			}
		})
	}
}

// lawFile is one file of a lawTree.
type lawFile struct {
	path string // with slashes, from the top of the repository
	text string
	ast  *ast.File // nil if the file is not Go, or is testdata
}

func (f *lawFile) dir() string  { return path.Dir(f.path) }
func (f *lawFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// inTools reports whether the file belongs to the module of tools.
func (f *lawFile) inTools() bool { return strings.HasPrefix(f.path, "tools/") }

// lawTree is the text of a repository, sorted by path.
type lawTree struct {
	fset  *token.FileSet
	files []*lawFile
}

// goFiles are the parsed files in order.
func (tree *lawTree) goFiles() []*lawFile {
	var out []*lawFile
	for _, f := range tree.files {
		if f.ast != nil {
			out = append(out, f)
		}
	}
	return out
}

// packages are the directories that hold Go files which are not tests.
func (tree *lawTree) packages() []string {
	var dirs []string
	for _, f := range tree.goFiles() {
		if !f.isTest() && !slices.Contains(dirs, f.dir()) {
			dirs = append(dirs, f.dir())
		}
	}
	return dirs
}

// at names a place as path:line.
func (tree *lawTree) at(pos token.Pos) string {
	p := tree.fset.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// text is the content of a file, or empty if there is no such file.
func (tree *lawTree) text(name string) string {
	for _, f := range tree.files {
		if f.path == name {
			return f.text
		}
	}
	return ""
}

func (tree *lawTree) add(name, text string) error {
	f := &lawFile{path: name, text: text}
	if strings.HasSuffix(name, ".go") && !strings.Contains("/"+name, "/testdata/") {
		parsed, err := parser.ParseFile(tree.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f.ast = parsed
	}
	tree.files = append(tree.files, f)
	return nil
}

// lawTreeOfRepository reads the working tree without what .gitignore names.
// It reads files rather than asking git, so that it also holds for an archive
// and for what is not committed yet.
func lawTreeOfRepository(t *testing.T) *lawTree {
	t.Helper()
	tree := &lawTree{fset: token.NewFileSet()}
	ignored := strings.Fields(readLawFile(t, ".gitignore"))
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() && (name == ".git" || ignoredByGit(ignored, name)) {
			return fs.SkipDir
		}
		if !entry.Type().IsRegular() || ignoredByGit(ignored, name) {
			return nil
		}
		return tree.add(name, readLawFile(t, name))
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func lawTreeOfExample(t *testing.T, files map[string]string) *lawTree {
	t.Helper()
	tree := &lawTree{fset: token.NewFileSet()}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := tree.add(name, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// ignoredByGit knows the two forms that our .gitignore uses: /path from the top
// and a pattern for the last element.
func ignoredByGit(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if top, ok := strings.CutPrefix(pattern, "/"); ok {
			if strings.TrimSuffix(top, "/") == name {
				return true
			}
		} else if ok, err := path.Match(pattern, path.Base(name)); ok && err == nil {
			return true
		}
	}
	return false
}

func readLawFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// callOf returns the package (or variable) and the name of a call like x.Name(…).
func callOf(n ast.Node) (x, name string, ok bool) {
	call, isCall := n.(*ast.CallExpr)
	if !isCall {
		return "", "", false
	}
	return selectorOf(call.Fun)
}

// selectorOf returns the two names of an expression x.Name.
func selectorOf(n ast.Node) (x, name string, ok bool) {
	selector, isSelector := n.(*ast.SelectorExpr)
	if !isSelector {
		return "", "", false
	}
	ident, isIdent := selector.X.(*ast.Ident)
	if !isIdent {
		return "", "", false
	}
	return ident.Name, selector.Sel.Name, true
}

// importsOf are the import paths of a file with their places.
func importsOf(f *lawFile) map[string]token.Pos {
	out := map[string]token.Pos{}
	for _, spec := range f.ast.Imports {
		out[strings.Trim(spec.Path.Value, "`\"")] = spec.Pos()
	}
	return out
}
