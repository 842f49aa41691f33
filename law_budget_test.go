package ringi_test

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// Budgets in lines, drawn from measurements of code that reads well: what sets
// it apart is not the typical length but the tail.
const (
	longestFile      = 800
	longestFunction  = 100
	longestPackage   = 4500 // of code: tests, comments and blank lines apart, since other laws demand comments
	usualFile        = 400  // nine files in ten
	usualFunction    = 40   // nine functions in ten
	mostMethods      = 8    // of an interface
	fewestForNinthOf = 50   // below this many, "nine in ten" says nothing
)

func budgetLaws() []law {
	function := func(lines int) string {
		return "package a\n\nfunc f() {\n" + strings.Repeat("\tf()\n", lines-2) + "}\n"
	}
	return []law{
		{
			name: "files, functions, packages and interfaces stay small", check: checkLongest,
			examples: []lawExample{
				{want: "", files: map[string]string{
					"a/a.go": function(longestFunction),
					"a/b.go": "package a\n" + strings.Repeat("//\n", longestFile-1),
					"a/c.go": "package a\n\ntype s interface {\n" + strings.Repeat("\tm()\n", mostMethods) + "}\n",
				}},
				{want: "a/a.go:3: f has 101 lines", files: map[string]string{"a/a.go": function(longestFunction + 1)}},
				{want: "a/b_test.go has 801 lines", files: map[string]string{"a/b_test.go": "package a\n" + strings.Repeat("//\n", longestFile)}},
				{want: "a/a.go:3: s has 9 methods", files: map[string]string{
					"a/a.go": "package a\n\ntype s interface {\n" + strings.Repeat("\tm()\n", mostMethods+1) + "}\n",
				}},
				{want: "package a has 4508 lines of code", files: map[string]string{
					"a/1.go": "package a\n" + strings.Repeat("var _ int\n", 750), "a/2.go": "package a\n" + strings.Repeat("var _ int\n", 750),
					"a/3.go": "package a\n" + strings.Repeat("var _ int\n", 750), "a/4.go": "package a\n" + strings.Repeat("var _ int\n", 750),
					"a/5.go": "package a\n" + strings.Repeat("var _ int\n", 750), "a/6.go": "package a\n" + strings.Repeat("// a word\n", 750),
					"a/7.go": "package a\n" + strings.Repeat("var _ int\n", 751),
				}},
			},
		},
		{
			name: "nine in ten files and functions are short", check: checkUsual,
			examples: []lawExample{
				{want: "", files: manyFunctions(91, 9)},
				{want: "one function in ten is longer than 40 lines", files: manyFunctions(85, 15)},
			},
		},
	}
}

// manyFunctions is a tree with so many functions of 40 and of 41 lines.
func manyFunctions(short, long int) map[string]string {
	files := map[string]string{}
	for i := range short + long {
		lines := usualFunction
		if i >= short {
			lines++
		}
		files[fmt.Sprintf("a/f%03d.go", i)] = fmt.Sprintf("package a\n\nfunc f%d() {\n%s}\n", i, strings.Repeat("\tf()\n", lines-2))
	}
	return files
}

// codeLines counts the lines that are neither blank nor a comment alone.
func codeLines(text string) (n int) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

func checkLongest(tree *lawTree) (findings []string) {
	packages := map[string]int{}
	for _, f := range tree.goFiles() {
		n := strings.Count(f.text, "\n")
		if n > longestFile {
			findings = append(findings, fmt.Sprintf("%s has %d lines, more than %d: give each noun its own file", f.path, n, longestFile))
		}
		if !f.isTest() {
			packages[f.dir()] += codeLines(f.text)
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl:
				if lines := tree.linesOf(node); lines > longestFunction {
					findings = append(findings, fmt.Sprintf("%s: %s has %d lines, more than %d: name its parts as functions, or turn cases into a table", tree.at(node.Pos()), node.Name.Name, lines, longestFunction))
				}
			case *ast.TypeSpec:
				if contract, ok := node.Type.(*ast.InterfaceType); ok && contract.Methods.NumFields() > mostMethods {
					findings = append(findings, fmt.Sprintf("%s: %s has %d methods, more than %d: let each consumer declare the contract that it needs", tree.at(node.Pos()), node.Name.Name, contract.Methods.NumFields(), mostMethods))
				}
			}
			return true
		})
	}
	for _, dir := range tree.packages() {
		if packages[dir] > longestPackage {
			findings = append(findings, fmt.Sprintf("package %s has %d lines of code, more than %d: carve off a pure leaf", dir, packages[dir], longestPackage))
		}
	}
	return findings
}

func checkUsual(tree *lawTree) (findings []string) {
	var files, functions []sized
	for _, f := range tree.goFiles() {
		files = append(files, sized{f.path, strings.Count(f.text, "\n")})
		for _, declaration := range f.ast.Decls {
			if fn, ok := declaration.(*ast.FuncDecl); ok {
				functions = append(functions, sized{tree.at(fn.Pos()) + " " + fn.Name.Name, tree.linesOf(fn)})
			}
		}
	}
	findings = append(findings, overNinth("file", files, usualFile)...)
	return append(findings, overNinth("function", functions, usualFunction)...)
}

// sized is something with a length in lines.
type sized struct {
	what  string
	lines int
}

// overNinth complains if more than one in ten is longer than limit, and names
// the longest, where shortening pays most.
func overNinth(kind string, all []sized, limit int) []string {
	slices.SortStableFunc(all, func(a, b sized) int { return b.lines - a.lines })
	if len(all) < fewestForNinthOf || all[len(all)/10].lines <= limit {
		return nil
	}
	var longest []string
	for _, s := range all[:min(10, len(all))] {
		longest = append(longest, fmt.Sprintf("%s (%d)", s.what, s.lines))
	}
	return []string{fmt.Sprintf("more than one %s in ten is longer than %d lines: split where a part has a name of its own; the longest are %s", kind, limit, strings.Join(longest, ", "))}
}

// linesOf is the length of a node, its comment not counted.
func (tree *lawTree) linesOf(n ast.Node) int {
	return tree.fset.Position(n.End()).Line - tree.fset.Position(n.Pos()).Line + 1
}
