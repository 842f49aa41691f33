package ringi_test

import (
	"fmt"
	"go/ast"
	"go/token"
)

func docLaws() []law {
	return []law{
		{
			name: "every package has a package comment", check: checkPackageComments,
			examples: []lawExample{
				{want: "", files: map[string]string{
					"store/doc.go":      "// Package store keeps what was decided.\npackage store\n",
					"store/memory.go":   "package store\n",
					"bench/w3_test.go":  "package bench_test\n",
					"testdata/wrong.go": "package wrong\n",
				}},
				{want: "package store has no package comment", files: map[string]string{
					"store/memory.go":   "//go:build linux\n\npackage store\n",
					"store/doc_test.go": "// Package store is explained in the wrong place.\npackage store\n",
				}},
			},
		},
		{
			name: "every exported name has a doc comment", check: checkDocComments,
			examples: []lawExample{
				{want: "", files: map[string]string{
					"a.go": `package ringi

// Run is one execution.
type Run struct{ ID string }

// Done reports whether it has ended.
func (r Run) Done() bool { return true }

// What a run can be.
const (
	Running = "running"
	Waiting = "waiting"
)

var (
	Unit = 1 // of time, in seconds
	own  = 2
)

type hidden struct{}

func (hidden) Seen() {}
`,
					"a_test.go": "package ringi\n\nfunc TestA() {}\n",
				}},
				{want: "a.go:3: Run has no doc comment", files: map[string]string{"a.go": "package ringi\n\ntype Run struct{}\n"}},
				{want: "a.go:6: Run.Done has no doc comment", files: map[string]string{
					"a.go": "package ringi\n\n// Run is one.\ntype Run[T any] struct{}\n\nfunc (r *Run[T]) Done() {}\n",
				}},
				{want: "a.go:3: Start has no doc comment", files: map[string]string{"a.go": "package ringi\n\nfunc Start() {}\n"}},
				{want: "a.go:5: Big has no doc comment", files: map[string]string{
					"a.go": "package ringi\n\nconst (\n\tSmall = 1 // bytes\n\tBig   = 2\n)\n",
				}},
				{want: "a.go:4: ErrGone has no doc comment", files: map[string]string{
					"a.go": "package ringi\n\n//nolint:all\nvar ErrGone error\n",
				}},
			},
		},
	}
}

func checkPackageComments(tree *lawTree) (findings []string) {
	for _, dir := range tree.packages() {
		documented := false
		for _, f := range tree.goFiles() {
			if f.dir() == dir && !f.isTest() && f.ast.Doc.Text() != "" {
				documented = true
			}
		}
		if !documented {
			findings = append(findings, fmt.Sprintf("package %s has no package comment: say in doc.go what it is for and how it is used, as a manual for someone who was not there", dir))
		}
	}
	return findings
}

func checkDocComments(tree *lawTree) (findings []string) {
	for _, f := range tree.goFiles() {
		if f.isTest() {
			continue
		}
		for _, declaration := range f.ast.Decls {
			for _, missing := range undocumented(declaration) {
				findings = append(findings, fmt.Sprintf("%s: %s has no doc comment: say what it means, with units, limits, errors and concurrency as they apply", tree.at(missing.Pos()), missing.name))
			}
		}
	}
	return findings
}

// exportedName is a name that others see, as they write it.
type exportedName struct {
	ast.Node
	name string
}

// undocumented are the exported names of a declaration that nothing explains.
// One comment above a group explains the constants or variables in it.
func undocumented(declaration ast.Decl) (missing []exportedName) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		receiver := receiverType(d)
		if !d.Name.IsExported() || receiver != "" && !ast.IsExported(receiver) || d.Doc.Text() != "" {
			return nil
		}
		name := d.Name.Name
		if receiver != "" {
			name = receiver + "." + name
		}
		return []exportedName{{d, name}}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT || d.Tok != token.TYPE && d.Doc.Text() != "" {
			return nil
		}
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				explained := s.Doc.Text() != "" || !d.Lparen.IsValid() && d.Doc.Text() != ""
				if s.Name.IsExported() && !explained {
					missing = append(missing, exportedName{s, s.Name.Name})
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() && s.Doc.Text() == "" && s.Comment.Text() == "" {
						missing = append(missing, exportedName{name, name.Name})
					}
				}
			}
		}
	}
	return missing
}

// receiverType is the name of the type that a method belongs to, or empty.
func receiverType(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	expr := f.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
