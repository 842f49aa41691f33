package main

import (
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what the program knows about how it was built.
type build struct {
	Version string `json:"version"`          // of the module, "devel" for a working copy
	Commit  string `json:"commit,omitempty"` // of the source, if it was built from a repository
	Changed bool   `json:"changed"`          // the source differed from that commit
	Go      string `json:"go"`
}

func buildOf() build {
	b := build{Version: "devel"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Changed = s.Value == "true"
		}
	}
	return b
}

func (p *Program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := buildOf()
			t := table{}
			t.row("ringi "+b.Version, b.Commit, b.Go)
			return p.print(b, t)
		},
	}
}
