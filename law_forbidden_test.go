package ringi_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// vagueNames are package names that say nothing about what is inside.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "base", "types", "manager", "processor"}

// forbiddenImports are standard packages that our code does without.
var forbiddenImports = map[string]string{
	"reflect": "write the code for each type; compare with slices.Equal, maps.Equal or ==",
	"unsafe":  "use safe conversions",
	"plugin":  "wire in cmd/ringi",
}

func forbiddenLaws() []law {
	return []law{
		{
			name: "no init, no reflection, no vague package names", check: checkForbidden,
			examples: []lawExample{
				{want: "", files: map[string]string{"a/a.go": "package a\n\ntype t struct{}\n\nfunc (t) init() {}\n"}},
				{want: "a/a.go:3: init", files: map[string]string{"a/a.go": "package a\n\nfunc init() {}\n"}},
				{want: "a/a_test.go:3: reflect", files: map[string]string{"a/a_test.go": "package a\n\nimport _ \"reflect\"\n"}},
				{want: "a/util/a.go: util", files: map[string]string{"a/util/a.go": "package util\n"}},
				{want: "a/x/a.go: helpers", files: map[string]string{"a/x/a.go": "package helpers\n"}},
			},
		},
		{
			name: "tests neither sleep nor skip", check: checkTests,
			examples: []lawExample{
				{want: "", files: map[string]string{
					"a/a_test.go": "package a\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestA(t *testing.T) {\n\t<-time.After(1)\n\tvar r reader\n\tr.Skip()\n}\n",
					"a/a.go":      "package a\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n",
				}},
				{want: "a/a_test.go:5: time.Sleep", files: map[string]string{
					"a/a_test.go": "package a\n\nimport \"time\"\n\nfunc TestA() { time.Sleep(1) }\n",
				}},
				{want: "a/a_test.go:5: b.Skipf", files: map[string]string{
					"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc BenchmarkA(b *testing.B) { b.Skipf(\"no\") }\n",
				}},
				{want: "store/storetest/a.go:5: tb.SkipNow", files: map[string]string{
					"store/storetest/a.go": "package storetest\n\nimport \"testing\"\n\nvar f = func(tb testing.TB) { tb.SkipNow() }\n",
				}},
				{want: "a/a_test.go:5: testing.Short", files: map[string]string{
					"a/a_test.go": "package a\n\nimport \"testing\"\n\nvar short = testing.Short()\n",
				}},
			},
		},
		{
			name: "production code does not link testing", check: checkTestingImport,
			examples: []lawExample{
				{want: "", files: map[string]string{
					"store/storetest/suite.go": "package storetest\n\nimport _ \"testing\"\n",
					"a/a_test.go":              "package a\n\nimport _ \"testing/synctest\"\n",
				}},
				{want: "a/a.go:3: testing/synctest", files: map[string]string{"a/a.go": "package a\n\nimport _ \"testing/synctest\"\n"}},
			},
		},
	}
}

func checkForbidden(tree *lawTree) (findings []string) {
	for _, f := range tree.goFiles() {
		for _, name := range []string{strings.TrimSuffix(f.ast.Name.Name, "_test"), lastElement(f.dir())} {
			if slices.Contains(vagueNames, name) {
				findings = append(findings, fmt.Sprintf("%s: %s says nothing: name the package after the noun that it owns", f.path, name))
			}
		}
		for _, declaration := range f.ast.Decls {
			if fn, ok := declaration.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				findings = append(findings, fmt.Sprintf("%s: init: importing must do nothing; construct it where it is wired", tree.at(fn.Pos())))
			}
		}
		imports := importsOf(f)
		for _, imp := range slices.Sorted(maps.Keys(imports)) {
			if instead := forbiddenImports[imp]; instead != "" {
				findings = append(findings, fmt.Sprintf("%s: %s: %s", tree.at(imports[imp]), imp, instead))
			}
		}
	}
	return findings
}

func lastElement(dir string) string { return dir[strings.LastIndex(dir, "/")+1:] }

func checkTests(tree *lawTree) (findings []string) {
	for _, f := range tree.goFiles() {
		if !f.isTest() && f.dir() != "store/storetest" {
			continue
		}
		handles := testHandles(f.ast)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			x, name, ok := callOf(n)
			switch {
			case !ok:
			case x == "time" && name == "Sleep":
				findings = append(findings, fmt.Sprintf("%s: time.Sleep: use an injected clock, or poll a condition on a ticker with a deadline; in a synctest bubble wait for <-time.After(d)", tree.at(n.Pos())))
			case handles[x] && (name == "Skip" || name == "Skipf" || name == "SkipNow"), x == "testing" && name == "Short":
				findings = append(findings, fmt.Sprintf("%s: %s.%s: nothing is skipped here; let the test start what it needs, and let it fail where that is missing", tree.at(n.Pos()), x, name))
			}
			return true
		})
	}
	return findings
}

// testHandles are the names that parameters of type *testing.T, B, F and TB
// have anywhere in a file.
func testHandles(file *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok {
			return true
		}
		of := field.Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if x, _, ok := selectorOf(of); ok && x == "testing" {
			for _, name := range field.Names {
				names[name.Name] = true
			}
		}
		return true
	})
	return names
}

func checkTestingImport(tree *lawTree) (findings []string) {
	for _, f := range tree.goFiles() {
		if f.isTest() || f.dir() == "store/storetest" {
			continue
		}
		imports := importsOf(f)
		for _, imp := range slices.Sorted(maps.Keys(imports)) {
			if isBelow(imp, []string{"testing"}) {
				findings = append(findings, fmt.Sprintf("%s: %s in production code: move it to a _test.go file, or to store/storetest if every driver runs it", tree.at(imports[imp]), imp))
			}
		}
	}
	return findings
}

func shapeLaws() []law {
	return []law{
		{
			name: "package variables never change", check: checkVariables,
			examples: []lawExample{
				{want: "", files: map[string]string{
					"a/a.go": `package a

import (
	"embed"
	"errors"
	"fmt"
	"regexp"
)

var ErrGone = errors.New("gone")

var errOld, errNew = fmt.Errorf("old"), fmt.Errorf("new")

var name = regexp.MustCompile("^a$")

//go:embed a.sql
var migrations embed.FS

var _ fmt.Stringer = (*t)(nil)

// verbs in the order of the manual.
// constant: only read
var verbs = []string{"go"}

var codes = map[string]int{} // constant: only read

// constant: tables that are only read
var (
	one = []int{1}
	two = []int{2}
)

func f() { var local = 1; local++ }
`,
					"a/a_test.go": "package a\n\nvar cases = []int{1}\n",
				}},
				{want: "a/a.go:3: cache", files: map[string]string{"a/a.go": "package a\n\nvar cache = map[string]int{}\n"}},
				{want: "a/a.go:3: count", files: map[string]string{"a/a.go": "package a\n\nvar count int\n"}},
				{want: "a/a.go:6: found", files: map[string]string{
					"a/a.go": "package a\n\nimport \"errors\"\n\n// Two kinds.\nvar errA, found = errors.New(\"a\"), lookup()\n",
				}},
			},
		},
		{
			name: "settings are a struct, not functional options", check: checkOptions,
			examples: []lawExample{
				{want: "", files: map[string]string{
					"a/a.go": "package a\n\ntype Config struct{ Size int }\n\nfunc WithRun(c ctx, id string) ctx { return c }\n\ntype Handler func() error\n",
				}},
				{want: "a/a.go:3: Option", files: map[string]string{"a/a.go": "package a\n\ntype Option func(*int)\n"}},
				{want: "a/a.go:3: WithSize", files: map[string]string{"a/a.go": "package a\n\nfunc WithSize(n int) ServerOption { return nil }\n"}},
			},
		},
	}
}

// unchanging are the calls whose result nobody can or does change.
var unchanging = []string{"errors.New", "fmt.Errorf", "regexp.MustCompile"}

func checkVariables(tree *lawTree) (findings []string) {
	for _, f := range tree.goFiles() {
		if f.isTest() {
			continue
		}
		for _, declaration := range f.ast.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				values, ok := spec.(*ast.ValueSpec)
				if !ok || saidConstant(group.Doc) || saidConstant(values.Doc) || saidConstant(values.Comment) {
					continue
				}
				for i, name := range values.Names {
					if name.Name == "_" || i < len(values.Values) && isUnchanging(values.Values[i]) {
						continue
					}
					findings = append(findings, fmt.Sprintf("%s: %s may change and belongs to nobody: make it a const, a field or an argument; a table that is only read says // constant: REASON", tree.at(name.Pos()), name.Name))
				}
			}
		}
	}
	return findings
}

func isUnchanging(value ast.Expr) bool {
	x, name, ok := callOf(value)
	return ok && slices.Contains(unchanging, x+"."+name)
}

// saidConstant reports whether a comment promises that a variable is only read,
// or is the directive that fills it when the program is built.
func saidConstant(comment *ast.CommentGroup) bool {
	if comment == nil {
		return false
	}
	for _, line := range comment.List {
		if strings.HasPrefix(line.Text, "//go:embed ") || strings.Contains(line.Text, "constant: ") {
			return true
		}
	}
	return false
}

func checkOptions(tree *lawTree) (findings []string) {
	bad := func(pos token.Pos, name string) {
		findings = append(findings, fmt.Sprintf("%s: %s: use a field of a Config struct whose zero value works; defaults and refusals happen once, at construction", tree.at(pos), name))
	}
	for _, f := range tree.goFiles() {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if _, ok := n.Type.(*ast.FuncType); ok && strings.HasSuffix(n.Name.Name, "Option") {
					bad(n.Pos(), n.Name.Name)
				}
			case *ast.FuncDecl:
				if n.Type.Results != nil && strings.HasPrefix(n.Name.Name, "With") {
					if result, ok := n.Type.Results.List[0].Type.(*ast.Ident); ok && strings.HasSuffix(result.Name, "Option") {
						bad(n.Pos(), n.Name.Name)
					}
				}
			}
			return true
		})
	}
	return findings
}
