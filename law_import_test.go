package ringi_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// mayImport is the architecture: which of our packages a package may import,
// test files apart. "." is the root, "*" stands for all. A package that is not
// here may not exist; see packageRule for the families.
var mayImport = map[string][]string{
	// The language stands on leaves, so that no package is too big to read.
	"workflow":         {"workflow/exact", "workflow/expr", "workflow/grammar"},
	"workflow/exact":   {},
	"workflow/expr":    {"workflow/exact"},
	"workflow/grammar": {}, // the form of a definition as data

	// What is made of definitions, for people who write them.
	"workflow/graph":  {"workflow"},                     // drawings
	"workflow/schema": {"workflow/grammar"},             // JSON Schema for editors
	"workflow/format": {"workflow", "workflow/grammar"}, // the usual layout
	"workflow/build":  {"workflow"},                     // definitions in Go

	"outbox": {"outbox/crash"},
	"inbox":  {},
	"seal":   {},

	// The outbox in each database, equals beside each other, and what they have in
	// common.
	"outbox/crash":    {},
	"outbox/table":    {"outbox"},
	"outbox/desk":     {"outbox", "outbox/table"}, // for those that speak SQL
	"outbox/memory":   {"outbox", "outbox/table"},
	"outbox/sqlite":   {"outbox", "outbox/crash", "outbox/desk", "outbox/table"},
	"outbox/mysql":    {"outbox", "outbox/crash", "outbox/desk", "outbox/table"},
	"outbox/postgres": {"outbox", "outbox/crash", "outbox/desk", "outbox/table"},

	// What calls to other people's servers must mind.
	"egress":         {},
	"outbox/webhook": {"outbox", "egress"},

	// Destinations and databases by their names, for programs: the one place
	// outside cmd that knows every broker.
	"address": {}, // how they are written
	"relay":   {".", "workflow", "address", "outbox", "outbox/kafka", "outbox/nats", "outbox/mysql", "outbox/ndjson", "outbox/postgres", "outbox/rabbitmq", "outbox/redis", "outbox/sqlite", "outbox/wal", "outbox/webhook"},

	"feed": {"workflow/expr", "workflow/exact", "address", "inbox", "inbox/kafka", "inbox/nats", "inbox/rabbitmq", "inbox/redis", "outbox", "outbox/kafka", "outbox/redis"}, // the way back

	".": {"workflow"},

	"store":           {".", "outbox", "outbox/memory"},
	"store/sqlite":    {".", "store", "outbox", "outbox/sqlite"},
	"store/postgres":  {".", "store", "outbox", "outbox/postgres"},
	"store/faulty":    {".", "store", "outbox"},
	"store/storetest": {".", "outbox", "store", "store/faulty"},

	// Servers for tests of any package and for demonstrations.
	"store/postgres/pgtest":  {},
	"outbox/nats/natsserver": {}, // a broker where none is installed
	"servertest":             {}, // brokers and databases other than PostgreSQL
	"child":                  {}, // programs as processes that are killed
	"servertest/fetch":       {"servertest"},

	"engine": {".", "store", "workflow", "engine/rows", "engine/sense"},
	"metric": {".", "engine", "store", "outbox"}, // the numbers of a server
	"config": {},                                 // files of settings

	// What a state asks for beside its log, and the check that it is there.
	"engine/rows":   {".", "store"},
	"engine/replay": {".", "store", "workflow", "engine/rows"},
	// What a node knows of the world around it.
	"engine/sense": {".", "store"},

	"access": {"."},
	"worker": {".", "worker/shift"},
	// What a worker decides, without clock or I/O.
	"worker/shift": {"."},

	// Activities that need no code of the user: calls over HTTP, and programs.
	"worker/httpstep": {".", "workflow", "worker", "egress"},
	"worker/command":  {".", "worker"},

	// Definitions tested under virtual time: the rules without an engine.
	"scenario": {".", "workflow", "workflow/exact", "workflow/expr"},

	"api":     {"."},
	"saga":    {"."},
	"console": {"."},
	"notify":  {"."},

	"sim":         {".", "workflow", "store", "store/faulty", "engine", "engine/replay", "worker/shift", "outbox", "sim/draw", "sim/fault", "sim/promise", "sim/skip", "sim/story"},
	"sim/draw":    {".", "workflow"},
	"sim/fault":   {},
	"sim/promise": {".", "workflow", "sim/draw"},
	"sim/skip":    {},
	"sim/story":   {"."},

	// The binary, with a package for each kind of reader of its help: cli is
	// what they all have in common, and nothing but the rest of cmd/ringi may
	// import them.
	"cmd/ringi": {"*"},
	// Worker libraries of every language against a real server: only tests.
	"sdk/conformance": {"*"},
	"bench":           {"*"},
	"bench/chaos":     {"*"}, // what survives, with a ledger that decides
}

// packageRule returns what the package in dir may import of ours.
func packageRule(dir string) (allowed []string, known bool) {
	if allowed, known = mayImport[dir]; known {
		return allowed, true
	}
	family, member, nested := strings.Cut(dir, "/")
	switch {
	case (family == "outbox" || family == "inbox") && nested && !strings.Contains(member, "/"):
		return []string{family}, true // one broker
	case family == "examples", strings.HasPrefix(dir, "cmd/ringi/") && strings.Count(dir, "/") == 2:
		return []string{"*"}, true
	}
	return nil, false
}

// bannedModules are import path prefixes with what to use instead.
var bannedModules = map[string]string{
	"gopkg.in/yaml.v3":               "use go.yaml.in/yaml/v3, which is maintained",
	"gopkg.in/yaml.v2":               "use go.yaml.in/yaml/v3, which is maintained",
	"github.com/stretchr/testify":    "write if got != want",
	"gotest.tools":                   "write if got != want",
	"github.com/onsi/gomega":         "write if got != want",
	"github.com/onsi/ginkgo":         "write a plain test function",
	"github.com/frankban/quicktest":  "write if got != want",
	"github.com/matryer/is":          "write if got != want",
	"github.com/golang/mock":         "use the memory store or store/faulty",
	"go.uber.org/mock":               "use the memory store or store/faulty",
	"github.com/DATA-DOG/go-sqlmock": "use a real database in a temporary directory",
	"github.com/spf13/viper":         "read settings in cmd/ringi; each must know its origin",
	"github.com/robfig/cron":         "it panics on user input; write the parser",
	"gorm.io":                        "write SQL",
	"github.com/jmoiron/sqlx":        "write SQL",
	"github.com/pkg/errors":          "use fmt.Errorf with %w",
	"github.com/sirupsen":            "use log/slog",
}

// brokerClients are import path prefixes that only outbox/<broker> and
// inbox/<broker> may use.
var brokerClients = []string{
	"github.com/twmb/franz-go", "github.com/nats-io/", "github.com/rabbitmq/amqp091-go",
	"github.com/redis/go-redis", "github.com/IBM/sarama", "github.com/segmentio/kafka-go",
}

func importLaws() []law {
	return []law{
		{
			name: "packages import in one direction", check: checkImportDirection,
			examples: []lawExample{
				{want: "", files: map[string]string{
					"run.go":                "package ringi\n\nimport _ \"" + ourModule + "/workflow\"\n",
					"run_test.go":           "package ringi_test\n\nimport _ \"" + ourModule + "/store\"\n",
					"outbox/kafka/kafka.go": "package kafka\n\nimport _ \"" + ourModule + "/outbox\"\n",
					"cmd/ringi/main.go":     "package main\n\nimport _ \"" + ourModule + "/engine\"\n",
				}},
				{want: "api/run.go:3: api must not import store", files: map[string]string{
					"api/run.go": "package api\n\nimport _ \"" + ourModule + "/store\"\n",
				}},
				{want: "workflow/check.go:3: workflow must not import .", files: map[string]string{
					"workflow/check.go": "package workflow\n\nimport _ \"" + ourModule + "\"\n",
				}},
				{want: "package cmd/other is not in the table", files: map[string]string{
					"cmd/other/main.go": "package main\n",
				}},
			},
		},
		{
			name: "other people's modules stay where they belong", check: checkThirdParty,
			examples: []lawExample{
				{want: "", files: map[string]string{
					"docs/dependencies.md":  "| `example.org/kafka` |\n| `github.com/twmb/franz-go` |\n",
					"go.mod":                "require example.org/kafka v1.0.0\nrequire github.com/twmb/franz-go v1.0.0\n",
					"outbox/kafka/kafka.go": "package kafka\n\nimport (\n\t_ \"example.org/kafka/v2\"\n\t_ \"github.com/twmb/franz-go/pkg/kgo\"\n)\n",
				}},
				{want: "run.go:3: the root package imports example.org/clever", files: map[string]string{
					"docs/dependencies.md": "| `example.org/clever` |", "go.mod": "require example.org/clever v1.0.0\n",
					"run.go": "package ringi\n\nimport _ \"example.org/clever\"\n",
				}},
				{want: "write if got != want", files: map[string]string{
					"run_test.go": "package ringi_test\n\nimport _ \"github.com/stretchr/testify/assert\"\n",
				}},
				{want: "engine/send.go:3: a broker client", files: map[string]string{
					"engine/send.go": "package engine\n\nimport _ \"github.com/nats-io/nats.go\"\n",
				}},
				{want: "example.org/new is not in docs/dependencies.md", files: map[string]string{
					"docs/dependencies.md": "", "engine/a.go": "package engine\n\nimport _ \"example.org/new\"\n",
				}},
				{want: "docs/dependencies.md lists example.org/old", files: map[string]string{
					"docs/dependencies.md": "| `example.org/old` |", "go.mod": "module x\n",
				}},
			},
		},
	}
}

func checkImportDirection(tree *lawTree) (findings []string) {
	for _, dir := range tree.packages() {
		if strings.HasPrefix(dir, "tools/") {
			continue // a module of its own
		}
		if _, known := packageRule(dir); !known {
			findings = append(findings, fmt.Sprintf("package %s is not in the table of law_import_test.go: put the code into a package that is, or add it with its reason", dir))
		}
	}
	for _, f := range tree.goFiles() {
		if f.isTest() || f.inTools() {
			continue
		}
		allowed, _ := packageRule(f.dir())
		imports := importsOf(f)
		for _, imp := range slices.Sorted(maps.Keys(imports)) {
			to, ours := ourPackage(imp)
			if ours && !slices.Contains(allowed, "*") && !slices.Contains(allowed, to) {
				findings = append(findings, fmt.Sprintf("%s: %s must not import %s: it may import %v; let the caller pass what you need, or move the rule to the package that owns it", tree.at(imports[imp]), f.dir(), to, allowed))
			}
		}
	}
	return findings
}

// listedModule finds the module names in docs/dependencies.md: they are the
// first cell of a table row, in backquotes.
var listedModule = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

func checkThirdParty(tree *lawTree) (findings []string) {
	var listed []string
	for _, match := range listedModule.FindAllStringSubmatch(tree.text("docs/dependencies.md"), -1) {
		listed = append(listed, match[1])
		if !strings.Contains(tree.text("go.mod"), match[1]+" v") {
			findings = append(findings, fmt.Sprintf("docs/dependencies.md lists %s, which go.mod does not require: remove the line", match[1]))
		}
	}
	for _, f := range tree.goFiles() {
		if f.inTools() {
			continue
		}
		imports := importsOf(f)
		for _, imp := range slices.Sorted(maps.Keys(imports)) {
			at := tree.at(imports[imp])
			if _, ours := ourPackage(imp); ours || !strings.Contains(strings.Split(imp, "/")[0], ".") {
				continue
			}
			if instead := bannedBy(imp); instead != "" {
				findings = append(findings, fmt.Sprintf("%s: %s is not used here: %s", at, imp, instead))
				continue
			}
			if f.dir() == "." && !f.isTest() {
				findings = append(findings, fmt.Sprintf("%s: the root package imports %s: the domain knows only the standard library and workflow; pass the result in as data", at, imp))
			}
			if isBrokerClient(imp) && !strings.HasPrefix(f.path, "outbox/") && !strings.HasPrefix(f.path, "inbox/") ||
				isBrokerClient(imp) && (f.dir() == "outbox" || f.dir() == "inbox") {
				findings = append(findings, fmt.Sprintf("%s: a broker client outside outbox/<broker> and inbox/<broker>: put what needs %s there", at, imp))
			}
			if !slices.ContainsFunc(listed, func(m string) bool { return imp == m || strings.HasPrefix(imp, m+"/") }) {
				findings = append(findings, fmt.Sprintf("%s: %s is not in docs/dependencies.md: add a line that says what it is for, its licence and who keeps it up", at, imp))
			}
		}
	}
	return findings
}

// ourPackage returns the directory of an import path of this module.
func ourPackage(imp string) (dir string, ours bool) {
	if imp == ourModule {
		return ".", true
	}
	return strings.CutPrefix(imp, ourModule+"/")
}

func bannedBy(imp string) (instead string) {
	for _, prefix := range slices.Sorted(maps.Keys(bannedModules)) {
		if imp == prefix || strings.HasPrefix(imp, prefix+"/") {
			return bannedModules[prefix]
		}
	}
	return ""
}

func isBrokerClient(imp string) bool {
	return slices.ContainsFunc(brokerClients, func(prefix string) bool { return strings.HasPrefix(imp, prefix) })
}
