package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/access"
	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/cmd/ringi/server"
	"github.com/ringiflow/ringi/examples/order"
	"github.com/ringiflow/ringi/worker"
)

// devDrain is how long the activities of ringi dev may take to end.
const devDrain = 5 * time.Second

func (p program) devCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dev", Short: "Run a server with an example, people and a worker, on this machine only", Args: cobra.NoArgs,
		Long: `Runs a server on this machine only, with everything in ./.ringi: the order process
and its four services as an example, a worker, and three people with keys: alice
and bob of finance, and carol of the managers. --as NAME acts as one of them.
For http steps that call services on this machine, give --http-allow 127.0.0.1.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.dev(cmd.Context()) },
	}
	cli.SettingFlags(cmd, cli.SetListen, cli.SetLogFormat, cli.SetHTTPAllow)
	cli.SettingFlags(cmd, cli.QuotaSettings()...)
	return cmd
}

// devPeople are the people of ringi dev. Carol asks, so that the others can approve.
func devPeople(dir string) []server.MadeKey {
	person := func(name, group string, scopes ...string) server.MadeKey {
		return server.MadeKey{File: filepath.Join(dir, "keys", name), Who: access.Principal{
			ID: name, Kind: ringi.Person, Groups: []string{group}, Scopes: append(scopes, api.ScopeRead, api.ScopeStart, api.ScopeDecide),
		}}
	}
	return []server.MadeKey{person("alice", "finance"), person("bob", "finance"), person("carol", "managers", api.ScopeOperate)}
}

func (p program) dev(ctx context.Context) error {
	p.Drain()
	host, _, err := net.SplitHostPort(p.Get(cli.SetListen))
	if err != nil || !cli.IsLocalHost(host) {
		return cli.Usage("ringi serve is for that", "ringi dev listens on this machine only, not on %q", p.Get(cli.SetListen))
	}
	dir := p.Path(cli.DevDir)
	if err := os.MkdirAll(filepath.Join(dir, "keys"), 0o700); err != nil {
		return err
	}
	database := filepath.Join(dir, "ringi.db")
	log := p.Logger()
	n, err := server.OpenNode(ctx, p.Program, server.NodeConfig{
		Database: database, Listen: p.Get(cli.SetListen), Log: log,
		Keys: database + cli.AdminKeySuffix + "s", Own: append(devPeople(dir), server.Admin(database)),
	})
	if err != nil {
		return err
	}
	trouble := func(err error) { log.Warn("the worker met trouble", "err", err) }
	example, ready := newExample(n.Engine, dir, trouble)
	var once sync.Once
	return n.Run(ctx, func(url string) {
		go func() {
			select {
			case <-ctx.Done():
			case <-ready:
				once.Do(func() { p.introduce(ctx, n.Engine, dir, url) })
			}
		}()
	}, example)
}

// introduce publishes the example, and says what to do with it.
func (p program) introduce(ctx context.Context, svc ringi.Service, dir, url string) {
	pub, err := svc.Publish(ctx, ringi.Publication{
		Tenant: ringi.DefaultTenant, Actor: ringi.Actor{ID: "admin", Kind: ringi.Person},
		File: order.DefinitionName + ".yaml", Source: order.Definition(),
	})
	if err == nil && pub.Version == 0 {
		err = fmt.Errorf("the example has problems: %v", pub.Problems)
	}
	key := "DEV-" + p.Now().UTC().Format("150405")
	if err == nil {
		err = writeExampleOrder(filepath.Join(dir, "order.json"), key)
	}
	if err != nil {
		p.Say("ringi: the example is not there: %v", err)
		return
	}
	server := ""
	if url != cli.DefaultServer {
		server = " --server " + url
	}
	call := ShellWord(p.Name)
	out := struct {
		URL      string   `json:"url"`
		Dir      string   `json:"dir"`
		People   []string `json:"people"`
		Commands []string `json:"commands"`
	}{URL: url, Dir: dir, Commands: []string{
		fmt.Sprintf("%s start %s --input @%s --key %s --as carol%s", call, order.DefinitionName, filepath.Join(cli.DevDir, "order.json"), key, server),
		call + " approvals" + server,
		fmt.Sprintf("%s approve %s --as alice --yes%s", call, key, server),
	}}
	for _, k := range devPeople(dir) {
		out.People = append(out.People, k.Who.ID)
	}
	if p.JSON() {
		err = p.PrintJSON(out)
	} else {
		_, err = fmt.Fprintf(p.Stdout, `ringi is ready at %s, with everything in %s.

Carol orders something that two people of finance must approve. In another
terminal, in this directory:

  %s
  %s
  %s

One more vote, --as bob, and it is charged and shipped: %s show %s%s
`, url, dir, out.Commands[0], out.Commands[1], out.Commands[2], call, key, server)
	}
	if err != nil {
		p.Say("ringi: %v", err)
	}
	if p.Listening != nil {
		p.Listening(url)
	}
}

// ShellWord is text as a shell takes it for one word.
func ShellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+/:@%", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// writeExampleOrder writes an order that needs approval.
func writeExampleOrder(file, id string) error {
	text, err := json.MarshalIndent(order.Order{
		OrderID: id, Customer: "carol@example.com", Amount: "128000", Items: []order.Item{{SKU: "DESK-OAK-160", Qty: 1}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// newExample returns the four services with a worker that calls them, as one
// part that runs until its context ends, and a channel that is closed when all
// of it can be used. The worker ends first, so that its last calls are heard.
func newExample(svc ringi.Service, dir string, trouble func(error)) (part func(context.Context) error, ready <-chan struct{}) {
	done := make(chan struct{})
	return func(ctx context.Context) error {
		services, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		urls, failed, wait := startServices(services, dir)
		a, err := awaitServices(ctx, urls, failed)
		if err == nil {
			var w *worker.Worker
			if w, err = exampleWorker(svc, a, trouble); err == nil {
				close(done)
				err = runBoth(ctx, w, failed)
			}
		}
		stop()
		wait()
		return err
	}, done
}

// startServices starts the four services; each says its URL once.
func startServices(ctx context.Context, dir string) (urls <-chan [2]string, failed <-chan error, wait func()) {
	names := order.ServiceNames()
	found, errs := make(chan [2]string, len(names)), make(chan error, len(names))
	var running sync.WaitGroup
	for _, name := range names {
		running.Go(func() {
			err := order.RunService(ctx, order.ServiceConfig{
				Name: name, DB: order.BookPath(dir, name), Ready: func(url string) { found <- [2]string{name, url} },
			})
			if err != nil {
				errs <- err
			}
		})
	}
	return found, errs, running.Wait
}

// awaitServices waits until each service has said where it is.
func awaitServices(ctx context.Context, urls <-chan [2]string, failed <-chan error) (*order.Activities, error) {
	a := &order.Activities{}
	at := map[string]*string{order.Stock: &a.Stock, order.Payment: &a.Payment, order.Shipping: &a.Shipping, order.Mail: &a.Mail}
	for range at {
		select {
		case u := <-urls:
			*at[u[0]] = u[1]
		case err := <-failed:
			return nil, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return a, nil
}

func exampleWorker(svc ringi.Service, a *order.Activities, trouble func(error)) (*worker.Worker, error) {
	return worker.New(worker.Config{
		Service: svc, Name: "dev", Drain: devDrain, Trouble: trouble,
		Queues: []worker.Queue{{Activities: demoActivities(a, demoDistance{})}},
	})
}

// runBoth runs the worker until ctx ends or a service fails.
func runBoth(ctx context.Context, w *worker.Worker, failed <-chan error) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	worked := make(chan error, 1)
	go func() { worked <- w.Run(working) }()
	select {
	case err := <-worked:
		return err
	case err := <-failed:
		stop()
		return errors.Join(err, <-worked)
	}
}
