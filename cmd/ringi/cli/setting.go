package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/config"
	"github.com/ringiflow/ringi/egress"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/wal"
	"github.com/ringiflow/ringi/relay"
	"github.com/ringiflow/ringi/workflow"
)

// A setting comes from its flag, else from RINGI_NAME, else from the file that
// --config names, else it is the default.
type setting struct {
	name     string // of the flag
	fallback string // the default
	usage    string
	reason   string // why the default is what it is
	yes      bool   // true or false
	many     bool   // may be given several times; its value is one a line
	check    func(value string) error
}

// env is the name of the environment variable.
func (s setting) env() string { return "RINGI_" + strings.ToUpper(s.key()) }

// key is the name in a configuration file.
func (s setting) key() string { return strings.ReplaceAll(s.name, "-", "_") }

// Names of settings.
const (
	SetServer      = "server"
	SetKeyFile     = "key-file"
	SetOutput      = "output"
	SetDatabase    = "database"
	SetListen      = "listen"
	SetKeys        = "keys"
	SetTLSCert     = "tls-cert"
	SetTLSKey      = "tls-key"
	SetBehindProxy = "behind-proxy"
	SetPublicURL   = "public-url"
	SetLogFormat   = "log-format"
	SetOutbox      = "outbox"
	SetHTTPAllow   = "http-allow"
	SetFeeds       = "feeds"
	SetInbox       = "inbox"
	SetQuotaSteps  = "quota-steps"
	SetQuotaDepth  = "quota-depth"
	SetQuotaWidth  = "quota-width"

	SetOutboxRoute    = "outbox-route"
	SetOutboxBatch    = "outbox-batch"
	SetOutboxLease    = "outbox-lease"
	SetOutboxPoll     = "outbox-poll"
	SetOutboxAttempts = "outbox-attempts"
	SetOutboxAfter    = "outbox-after"
	SetOutboxKeep     = "outbox-keep"
	SetSource         = "source"
	SetWALLimit       = "wal-limit"
)

// How messages are found.
const (
	SourcePoll = "poll"
	SourceWAL  = "wal"
)

// TuningSettings say how a relay works, wherever it runs.
func TuningSettings() []string {
	return []string{SetOutboxBatch, SetOutboxLease, SetOutboxPoll, SetOutboxAttempts, SetOutboxAfter, SetOutboxKeep, SetSource, SetWALLimit}
}

// QuotaSettings bound definitions, where they are published and where they are
// checked before.
func QuotaSettings() []string { return []string{SetQuotaSteps, SetQuotaDepth, SetQuotaWidth} }

// Quotas are the values of the QuotaSettings.
func (p *Program) Quotas() workflow.Quotas {
	number := func(name string) int {
		n, _ := strconv.Atoi(p.Get(name)) // it was checked
		return n
	}
	return workflow.Quotas{Steps: number(SetQuotaSteps), Depth: number(SetQuotaDepth), Width: number(SetQuotaWidth)}
}

// Defaults of settings that others name.
const (
	DefaultServer   = "http://127.0.0.1:7070"
	DefaultListen   = "127.0.0.1:7070"
	DefaultDatabase = "sqlite:./ringi.db"
)

// allSettings is every setting, in the order in which it is printed.
func allSettings() []setting {
	return []setting{
		{name: SetServer, fallback: DefaultServer, usage: "address of the server; of several on one database, separated by commas, the next is asked while one is away", reason: "where ringi serve listens by default", check: checkServer},
		{name: SetKeyFile, usage: "file that holds the key to use", reason: "the key that serve or dev made on this machine is found by itself"},
		{name: SetOutput, fallback: OutputTable, usage: "how to print data: table or json", reason: "people read it first; scripts say json", check: oneOf(OutputTable, OutputJSON)},
		{name: SetDatabase, fallback: DefaultDatabase, usage: "sqlite:PATH or postgres://…; for ringi relay and ringi outbox mysql://… too", reason: "one file in the working directory, nothing to install", check: checkDatabase},
		{name: SetListen, fallback: DefaultListen, usage: "address to listen on", reason: "reachable from this machine only"},
		{name: SetKeys, usage: "file of keys; without one an admin key is made beside the database", reason: "works at once, and only for who can read the database's directory"},
		{name: SetTLSCert, usage: "file with the certificate, PEM"},
		{name: SetTLSKey, usage: "file with the certificate's private key, PEM"},
		{name: SetBehindProxy, fallback: "false", usage: "a proxy in front ends TLS", reason: "a server that others reach must not take keys in clear text", yes: true},
		{name: SetPublicURL, usage: "address under which other machines reach the server", reason: "requests for other hosts are refused"},
		{name: SetLogFormat, fallback: "text", usage: "text or json", reason: "people read it first", check: oneOf("text", "json")},
		{name: SetOutbox, many: true, usage: "where messages go, [NAME=]DESTINATION: " + relay.Forms + "; or off", reason: "serve: a file beside the database, so that nothing grows unread", check: checkOutbox},
		{name: SetFeeds, usage: "file that says which messages of brokers become events or start runs: ringi help feed", reason: "nothing comes from a broker"},
		{name: SetInbox, usage: "where messages are set aside that ringi refused for good: sqlite:PATH or postgres://…", reason: "beside the database: a file PATH.inbox, or the same PostgreSQL database", check: checkDatabase},
		{name: SetHTTPAllow, many: true, usage: "CIDR of a private network that http steps may call", reason: "a definition must not reach what only this machine or its network can", check: checkNetworks},
		{name: SetQuotaSteps, fallback: count(workflow.DefaultSteps), usage: "steps of a definition", reason: "a process that people can still read", check: checkQuota(workflow.MaxSteps)},
		{name: SetQuotaDepth, fallback: count(workflow.DefaultDepth), usage: "blocks of a definition in each other", reason: "a process that people can still read", check: checkQuota(workflow.MaxDepth)},
		{name: SetQuotaWidth, fallback: count(workflow.DefaultWidth), usage: "branches of a parallel side by side", reason: "one run takes no more tasks than that at a time", check: checkQuota(workflow.MaxWidth)},
		{name: SetOutboxRoute, many: true, usage: "AGGREGATETYPE[/TYPE]=NAME: what goes to the destination of that name", reason: "everything goes to the one without a name"},
		{name: SetOutboxBatch, fallback: count(outbox.DefaultBatch), usage: "messages claimed and published at once", reason: "one fsync carries them all", check: checkCount},
		{name: SetOutboxLease, fallback: span(outbox.DefaultLease), usage: "how long a relay that died holds its messages", reason: "longer than any destination takes to answer", check: checkLease},
		{name: SetOutboxPoll, fallback: span(outbox.DefaultPollMost), usage: "the longest pause between two looks at the outbox", reason: "the delay that a lost wake-up costs", check: checkSpan},
		{name: SetOutboxAttempts, fallback: count(outbox.DefaultAttempts), usage: "tries of a message that its destination refuses", reason: "about four minutes of refusals", check: checkCount},
		{name: SetOutboxAfter, fallback: AfterLast()[0], usage: "what follows the last try: dead-letter (its aggregate goes on), park (its aggregate waits for a person), block (no try is the last)", reason: "one bad message stops nobody", check: oneOf(AfterLast()...)},
		{name: SetOutboxKeep, fallback: span(outbox.DefaultRetention), usage: "how long delivered messages are kept", reason: "long enough to notice that a consumer lost something", check: checkSpan},
		{name: SetSource, fallback: SourcePoll, usage: "how messages are found: poll, or wal (PostgreSQL's write-ahead log, which needs wal_level=logical)", reason: "polling needs nothing but the table", check: oneOf(SourcePoll, SourceWAL)},
		{name: SetWALLimit, fallback: count(wal.DefaultMostWAL >> 20), usage: "with --source wal, the most write-ahead log in MiB that the server may keep for this relay", reason: "a disk that has not a gigabyte to spare is full anyway", check: checkCount},
	}
}

// AfterLast are what becomes of a message after its last try, in the order of
// outbox.Policy.
func AfterLast() []string { return []string{"dead-letter", "block", "park"} }

// resolved is the value of a setting and where it came from.
type resolved struct {
	setting
	value  string
	origin string
}

// settings are the resolved ones, by name, and what only a flag can say.
type settings struct {
	values map[string]resolved
	file   string // --config
	as     string // --as
	print  bool   // --print-config
}

// Get returns the value of a setting.
func (p *Program) Get(name string) string { return p.settings.values[name].value }

// Is returns the value of a setting that is true or false.
func (p *Program) Is(name string) bool { return p.Get(name) == "true" }

// Given reports whether somebody chose the value of a setting.
func (p *Program) Given(name string) bool { return p.settings.values[name].origin != originDefault }

const originDefault = "default"

// globalFlags are the flags of every command.
func (p *Program) globalFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.String(SetServer, DefaultServer, flagUsage(SetServer))
	f.String(SetKeyFile, "", flagUsage(SetKeyFile))
	f.StringP(SetOutput, "o", OutputTable, flagUsage(SetOutput))
	f.Bool("json", false, "the same as -o json")
	f.StringVar(&p.settings.file, "config", "", "file with settings, YAML (RINGI_CONFIG)")
	f.BoolVar(&p.settings.print, "print-config", false, "print every setting with its origin, and the defaults, and stop")
	f.StringVar(&p.settings.as, "as", "", "with ringi dev: act as alice, bob or carol")
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// SettingFlags gives a command the flags of further settings.
func SettingFlags(cmd *cobra.Command, names ...string) {
	for _, s := range allSettings() {
		switch {
		case !slices.Contains(names, s.name):
		case s.yes:
			cmd.Flags().Bool(s.name, false, flagUsage(s.name))
		case s.many:
			cmd.Flags().Var(&several{}, s.name, flagUsage(s.name))
		default:
			cmd.Flags().String(s.name, s.fallback, flagUsage(s.name))
		}
	}
}

// several is the value of a flag that may be given again.
type several struct{ lines []string }

// String is one value a line.
func (s *several) String() string { return strings.Join(s.lines, "\n") }

// Set adds a value.
func (s *several) Set(value string) error {
	s.lines = append(s.lines, value)
	return nil
}

// Type names the value in the help.
func (s *several) Type() string { return "text" }

func flagUsage(name string) string {
	for _, s := range allSettings() {
		if s.name == name {
			return s.usage + " (" + s.env() + ")"
		}
	}
	return ""
}

// errPrinted ends a command that was only asked for its settings.
var errPrinted = errors.New("settings printed")

// resolve finds the value of every setting for the command that is about to run.
func (p *Program) resolve(cmd *cobra.Command) error {
	file, err := p.readConfig()
	if err != nil {
		return err
	}
	p.settings.values = map[string]resolved{}
	for _, s := range allSettings() {
		r := p.origin(cmd, s, file)
		if s.yes {
			b, err := strconv.ParseBool(r.value)
			if err != nil {
				return Usage("write true or false", "%s: %s is %q", r.origin, s.name, r.value)
			}
			r.value = strconv.FormatBool(b)
		}
		if s.check != nil && r.value != "" {
			if err := s.check(r.value); err != nil {
				return Usage("", "%s: %v", r.origin, err)
			}
		}
		p.settings.values[s.name] = r
	}
	if json, _ := cmd.Flags().GetBool("json"); json {
		p.settings.values[SetOutput] = resolved{p.settings.values[SetOutput].setting, OutputJSON, "flag --json"}
	}
	if p.settings.print {
		if err := p.printSettings(); err != nil {
			return err
		}
		return errPrinted
	}
	return nil
}

// origin looks for a setting in the order of precedence.
func (p *Program) origin(cmd *cobra.Command, s setting, file map[string]config.Value) resolved {
	if flag := cmd.Flags().Lookup(s.name); flag != nil && flag.Changed {
		return resolved{s, flag.Value.String(), "flag --" + s.name}
	}
	if v := p.Env(s.env()); v != "" {
		return resolved{s, v, s.env()}
	}
	if v, ok := file[s.key()]; ok {
		return resolved{s, v.Text, v.At}
	}
	return resolved{s, s.fallback, originDefault}
}

// printSettings prints the settings and the defaults.
func (p *Program) printSettings() error {
	type settingView struct {
		Name   string `json:"name"`
		Value  string `json:"value"`
		Origin string `json:"origin"`
		Reason string `json:"reason,omitempty"`
	}
	out := struct {
		Settings []settingView  `json:"settings"`
		Defaults []FixedDefault `json:"defaults"`
	}{Defaults: fixedDefaults()}
	t := Table{Head: []string{"SETTING", "VALUE", "ORIGIN", "WHY"}}
	for _, s := range allSettings() {
		r := p.settings.values[s.name]
		v := settingView{Name: s.name, Value: WithoutPassword(r.value), Origin: r.origin}
		if s.name == SetOutbox {
			v.Value = relay.Masked(r.value)
		}
		if r.origin == originDefault {
			v.Reason = s.reason
		}
		out.Settings = append(out.Settings, v)
		t.Row(v.Name, v.Value, v.Origin, v.Reason)
	}
	t.Row()
	t.Row("DEFAULT", "VALUE", "", "WHY")
	for _, d := range out.Defaults {
		t.Row(d.Name, d.Value, "built in", d.Reason)
	}
	return p.Print(out, t)
}

func oneOf(words ...string) func(string) error {
	return func(v string) error {
		if slices.Contains(words, v) {
			return nil
		}
		return fmt.Errorf("%q is not one of %s", v, strings.Join(words, ", "))
	}
}

func checkServer(v string) error {
	if _, err := api.Addresses(v); err != nil {
		return fmt.Errorf("the server %q is not an address: write http:// or https:// and a host, as in %s; several are separated by commas", v, DefaultServer)
	}
	return nil
}

func checkDatabase(v string) error {
	switch {
	case IsPostgres(v):
		if _, err := url.Parse(v); err != nil {
			return errors.New("the database's URL cannot be read: write postgres://user:password@host:port/database, with %XX for odd characters in the password")
		}
	case IsMySQL(v):
		if _, err := url.Parse(v); err != nil {
			return errors.New("the database's URL cannot be read: write mysql://user:password@host:port/database, with %XX for odd characters in the password")
		}
	case !strings.HasPrefix(v, "sqlite:") || v == "sqlite:":
		return fmt.Errorf("the database %q is not one: write sqlite:PATH, as in %s, or postgres://user:password@host:port/database", WithoutPassword(v), DefaultDatabase)
	}
	return nil
}

func checkOutbox(v string) error {
	if v == OutboxOff {
		return nil
	}
	_, err := relay.ParsePlaces(v)
	return err
}

// Networks reads the value of SetHTTPAllow.
func Networks(v string) ([]netip.Prefix, error) {
	return egress.ParseNetworks(strings.ReplaceAll(v, "\n", ","))
}

func checkNetworks(v string) error {
	_, err := Networks(v)
	return err
}

func checkCount(v string) error {
	if n, err := strconv.Atoi(v); err != nil || n < 1 {
		return fmt.Errorf("%q is not a number above 0", v)
	}
	return nil
}

// checkQuota checks a quota, which lies within the bound of the language.
func checkQuota(most int) func(string) error {
	return func(v string) error {
		if n, err := strconv.Atoi(v); err != nil || n < 1 || n > most {
			return fmt.Errorf("%q is not a number from 1 to %d, which is the bound of the language", v, most)
		}
		return nil
	}
}

func checkSpan(v string) error {
	if d, err := time.ParseDuration(v); err != nil || d <= 0 {
		return fmt.Errorf("%q is not a span of time above 0, as in 90s or 2h", v)
	}
	return nil
}

// leastLease is the shortest lease of a relay. Half of it is for the destination, and
// what was sent is marked in the other half: with less, every batch would be sent by
// the next relay too.
const leastLease = 100 * time.Millisecond

func checkLease(v string) error {
	if err := checkSpan(v); err != nil {
		return err
	}
	if d, _ := time.ParseDuration(v); d < leastLease {
		return fmt.Errorf("%s is too short: a batch is sent in half of it and marked before its end, or the next relay sends it too; take at least %s", v, leastLease)
	}
	return nil
}
