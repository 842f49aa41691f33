package ringi_test

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The words are put together here, so that this file passes its own laws.
var (
	unfinished   = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	machinePaths = []string{"/wo" + "rk/", "/tmp/" + "bash_jobs", "/ro" + "ot/", "/home/" + "runner"}
	registries   = []string{
		"proxy." + "golang.org", "sum." + "golang.org", "registry." + "npmjs.org", "py" + "pi.org", "crates." + "io",
		"repo1." + "maven", "deb." + "debian.org", "security." + "debian.org", "registry-1." + "docker.io",
	}
)

func textLaws() []law {
	return []law{
		{
			name: "nothing is left for later and nothing names a machine", check: checkText,
			examples: []lawExample{
				{want: "", files: map[string]string{
					"README.md":     "Work in /var/lib/ringi. See https://pkg.go.dev.\n",
					"docs/logo.bin": "\xff\xfe TO" + "DO",
					"a/a.go":        "package a\n\n// mktemp -d ringi.XXXXXX\nvar a int\n",
				}},
				{want: "a/a.go:3: TO" + "DO", files: map[string]string{"a/a.go": "package a\n\n// TO" + "DO: write it\n"}},
				{want: ".ci/run:2: /wo" + "rk/", files: map[string]string{".ci/run": "#!/bin/sh\ncd /wo" + "rk/main\n"}},
				{want: "Makefile:1: proxy." + "golang.org", files: map[string]string{"Makefile": "GOPROXY=https://proxy." + "golang.org\n"}},
			},
		},
	}
}

func checkText(tree *lawTree) (findings []string) {
	for _, f := range tree.files {
		if !utf8.ValidString(f.text) {
			continue // pictures and other bytes
		}
		for i, line := range strings.Split(f.text, "\n") {
			at := fmt.Sprintf("%s:%d", f.path, i+1)
			if word := unfinished.FindString(line); word != "" {
				findings = append(findings, fmt.Sprintf("%s: %s: finish it, or file an issue and leave it out", at, word))
			}
			for _, path := range machinePaths {
				if strings.Contains(line, path) {
					findings = append(findings, fmt.Sprintf("%s: %s is a place on one machine: use a path from the top of the repository or a temporary directory", at, path))
				}
			}
			for _, host := range registries {
				if strings.Contains(line, host) {
					findings = append(findings, fmt.Sprintf("%s: %s: leave the choice of registry to the settings of whoever builds", at, host))
				}
			}
		}
	}
	return findings
}
