package ringi_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// impureImports are standard packages (and all below them) that bring the
// world into a package of rules.
var impureImports = []string{
	"crypto/rand", "database/sql", "io/ioutil", "log", "math/rand", "net", "os", "plugin", "runtime", "syscall", "unsafe",
	"github.com/google/uuid",
}

// pureDespite are packages below those that only compute.
var pureDespite = []string{"net/url"}

// clockCalls are the functions that read or use the clock, by package.
var clockCalls = map[string][]string{
	"time":    {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
}

func purityLaws() []law {
	return []law{
		{
			name: "the rules have no clock, chance, concurrency or I/O", check: checkPurity,
			examples: []lawExample{
				{want: "", files: map[string]string{
					"decide.go":         "package ringi\n\nimport \"time\"\n\nfunc decide(at time.Time) bool { return at.IsZero() }\n",
					"decide_test.go":    "package ringi\n\nimport _ \"os\"\n\nfunc f() { go f() }\n",
					"engine/loop.go":    "package engine\n\nimport _ \"os\"\n\nfunc f() { go f() }\n",
					"workflow/cache.go": "package workflow\n\nimport (\n\t_ \"net/url\"\n\t_ \"sync\"\n)\n",
				}},
				{want: "decide.go:5: time.Now", files: map[string]string{
					"decide.go": "package ringi\n\nimport \"time\"\n\nvar _ = time.Now\n",
				}},
				{want: "workflow/a.go:3: go statement", files: map[string]string{
					"workflow/a.go": "package workflow\n\nfunc f() { go f() }\n",
				}},
				{want: "a.go:3: channel", files: map[string]string{"a.go": "package ringi\n\nvar _ chan int\n"}},
				{want: "a.go:3: receive", files: map[string]string{"a.go": "package ringi\n\nfunc f(c c) { <-c }\n"}},
				{want: "a.go:3: send", files: map[string]string{"a.go": "package ringi\n\nfunc f(c c) { c <- 1 }\n"}},
				{want: "a.go:3: select", files: map[string]string{"a.go": "package ringi\n\nfunc f() { select {} }\n"}},
				{want: "a.go:3: math/rand/v2", files: map[string]string{"a.go": "package ringi\n\nimport _ \"math/rand/v2\"\n"}},
				{want: "a.go:3: sync/atomic", files: map[string]string{"a.go": "package ringi\n\nimport _ \"sync/atomic\"\n"}},
			},
		},
		{
			name: "the rules do not depend on map order", check: checkMapOrder,
			examples: []lawExample{
				{want: "", files: map[string]string{
					"a.go": "package ringi\n\nimport \"slices\"\n\n" +
						"func keys(m map[string]int) (out []string) {\n\tfor k := range m {\n\t\tout = append(out, k)\n\t}\n\tslices.Sort(out)\n\treturn out\n}\n",
					"b.go": "package ringi\n\nfunc sum(m map[string]int) (n int) {\n\t// order does not matter: addition commutes\n\tfor _, v := range m {\n\t\tn += v\n\t}\n\treturn n\n}\n",
					"c.go": "package ringi\n\nimport (\n\t\"maps\"\n\t\"slices\"\n)\n\nfunc sorted(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }\n\nfunc f(s []int) {\n\tfor range s {\n\t}\n}\n",
				}},
				{want: "a.go:4: ranges over a map", files: map[string]string{
					"a.go": "package ringi\n\nfunc first(m map[string]int) string {\n\tfor k := range m {\n\t\treturn k\n\t}\n\treturn \"\"\n}\n",
				}},
				{want: "a.go:6: ranges over a map", files: map[string]string{
					"a.go":          "package ringi\n\nimport \"" + ourModule + "/workflow\"\n\nfunc f(d workflow.Definition) {\n\tfor range d.Steps {\n\t}\n}\n",
					"workflow/d.go": "package workflow\n\ntype Steps map[string]int\n\ntype Definition struct{ Steps Steps }\n",
				}},
				{want: "a.go:5: maps.Keys", files: map[string]string{
					"a.go": "package ringi\n\nimport \"maps\"\n\nfunc f(m map[string]int) { for range maps.Keys(m) {} }\n",
				}},
				{want: "a.go:4: ranges over a map", files: map[string]string{
					"a.go": "package ringi\n\nfunc f(m map[string]int) { // order does not matter:\n\tfor range m {\n\t}\n}\n",
				}},
			},
		},
	}
}

// ofRules reports whether the package in dir holds rules: the domain, the language,
// and what a worker decides.
func ofRules(dir string) bool {
	return dir == "." || isBelow(dir, []string{"workflow", "worker/shift"})
}

func checkPurity(tree *lawTree) (findings []string) {
	for _, f := range tree.goFiles() {
		if f.isTest() || !ofRules(f.dir()) {
			continue
		}
		bad := func(pos token.Pos, what string) {
			findings = append(findings, fmt.Sprintf("%s: %s in a package of rules: time, identity and chance come in as data, effects go out as values, and the shell in engine obeys", tree.at(pos), what))
		}
		imports := importsOf(f)
		for _, imp := range slices.Sorted(maps.Keys(imports)) {
			if isBelow(imp, impureImports) && !isBelow(imp, pureDespite) || f.dir() == "." && isBelow(imp, []string{"sync"}) {
				bad(imports[imp], imp)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				bad(n.Pos(), "go statement")
			case *ast.SelectStmt:
				bad(n.Pos(), "select")
			case *ast.SendStmt:
				bad(n.Pos(), "send")
			case *ast.ChanType:
				bad(n.Pos(), "channel")
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					bad(n.Pos(), "receive")
				}
			case *ast.SelectorExpr:
				if x, name, ok := selectorOf(n); ok && slices.Contains(clockCalls[x], name) {
					bad(n.Pos(), x+"."+name)
				}
			}
			return true
		})
	}
	return findings
}

func isBelow(imp string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return imp == p || strings.HasPrefix(imp, p+"/") })
}

// mapOrder is what checkMapOrder knows about the root package.
type mapOrder struct {
	tree     *lawTree
	types    map[ast.Expr]types.TypeAndValue
	excused  map[string]bool // places (path:line) with the comment that gives a reason
	findings []string
}

// orderDoesNotMatter is the comment that excuses a loop, with its reason.
var orderDoesNotMatter = regexp.MustCompile(`order does not matter: *\S`)

func checkMapOrder(tree *lawTree) []string {
	law := &mapOrder{tree: tree, types: map[ast.Expr]types.TypeAndValue{}, excused: map[string]bool{}}
	files := tree.typed(".", &types.Info{Types: law.types})
	for _, f := range files {
		for _, group := range f.Comments {
			if orderDoesNotMatter.MatchString(group.Text()) {
				end := tree.fset.Position(group.End())
				law.excused[fmt.Sprintf("%s:%d", end.Filename, end.Line)] = true   // on the line itself
				law.excused[fmt.Sprintf("%s:%d", end.Filename, end.Line+1)] = true // on the line above
			}
		}
		ast.Inspect(f, law.visit)
	}
	return law.findings
}

func (law *mapOrder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BlockStmt:
		law.statements(n.List)
	case *ast.CaseClause:
		law.statements(n.Body)
	case *ast.CallExpr:
		if x, name, ok := callOf(n); ok && x == "slices" && strings.HasPrefix(name, "Sorted") {
			return false // sorts whatever order its argument has
		}
		if x, name, ok := callOf(n); ok && x == "maps" && (name == "Keys" || name == "Values" || name == "All") {
			law.bad(n.Pos(), "maps."+name)
		}
	}
	return true
}

// statements looks at the loops of one block, where a sort may follow them.
func (law *mapOrder) statements(list []ast.Stmt) {
	for i, statement := range list {
		if labelled, ok := statement.(*ast.LabeledStmt); ok {
			statement = labelled.Stmt
		}
		loop, ok := statement.(*ast.RangeStmt)
		if !ok {
			continue
		}
		over := law.types[loop.X].Type
		switch {
		case over == nil || over == types.Typ[types.Invalid]:
			law.bad(loop.Pos(), "ranges over something whose type this test cannot see")
		case isMap(over) && (i+1 == len(list) || !isSort(list[i+1])):
			law.bad(loop.Pos(), "ranges over a map")
		}
	}
}

func (law *mapOrder) bad(pos token.Pos, what string) {
	if at := law.tree.at(pos); !law.excused[at] {
		law.findings = append(law.findings, fmt.Sprintf("%s: %s: the same command must give the same events in the same order; range over slices.Sorted(maps.Keys(m)), sort right after the loop, or say above it why // order does not matter: REASON", at, what))
	}
}

func isMap(t types.Type) bool {
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// isSort reports whether a statement sorts something.
func isSort(statement ast.Stmt) bool {
	expr, ok := statement.(*ast.ExprStmt)
	if !ok {
		return false
	}
	x, name, ok := callOf(expr.X)
	return ok && (x == "sort" || x == "slices" && strings.HasPrefix(name, "Sort"))
}

// typed type-checks the package in dir, without its tests, as far as its own
// code, workflow and the standard library go, and returns its files. What other
// modules define stays unknown, so that no compiled dependency is needed.
func (tree *lawTree) typed(dir string, info *types.Info) []*ast.File {
	var files []*ast.File
	for _, f := range tree.goFiles() {
		if f.dir() == dir && !f.isTest() {
			files = append(files, f.ast)
		}
	}
	tree.check(dir, files, info, importer.ForCompiler(tree.fset, "source", nil))
	return files
}

func (tree *lawTree) check(dir string, files []*ast.File, info *types.Info, std types.Importer) *types.Package {
	config := types.Config{
		Error:    func(error) {}, // unknown things are expected; the compiler judges the rest
		Importer: lawImporter{tree: tree, std: std},
	}
	// The error repeats the first of those that config.Error was told.
	pkg, _ := config.Check(dir, tree.fset, files, info)
	return pkg
}

// lawImporter finds our own packages in the tree and the standard ones in the
// Go installation; any other is an empty package.
type lawImporter struct {
	tree *lawTree
	std  types.Importer
}

func (imp lawImporter) Import(name string) (*types.Package, error) {
	if dir, ours := ourPackage(name); ours {
		var files []*ast.File
		for _, f := range imp.tree.goFiles() {
			if f.dir() == dir && !f.isTest() {
				files = append(files, f.ast)
			}
		}
		return imp.tree.check(dir, files, nil, imp.std), nil
	}
	if !strings.Contains(strings.Split(name, "/")[0], ".") {
		return imp.std.Import(name)
	}
	unknown := types.NewPackage(name, name[strings.LastIndex(name, "/")+1:])
	unknown.MarkComplete()
	return unknown, nil
}
