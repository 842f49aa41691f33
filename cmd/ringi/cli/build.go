package cli

import "runtime/debug"

// Build is what the program knows about how it was built.
type Build struct {
	Version string `json:"version"`          // of the module, "devel" for a working copy
	Commit  string `json:"commit,omitempty"` // of the source, if it was built from a repository
	Changed bool   `json:"changed"`          // the source differed from that commit
	Go      string `json:"go"`
}

// BuildOf returns what is known about this binary.
func BuildOf() Build {
	b := Build{Version: "devel"}
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
