package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/access"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

func (p program) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run a server", Args: cobra.NoArgs,
		Long: `Runs a server. Without --keys it makes one admin key beside the database, or
where a file would be, which the other commands and servers in this directory
find, and then it listens on this machine only. After SIGTERM
or SIGINT it takes in nothing new, ends what is under way within 30 s and exits
with 0; after a second signal it exits at once.

Messages of emit go to the destinations of --outbox, which ringi help relay
explains; --outbox-route 'Order/*=audit' sends some to the one that is named
audit. With --outbox off they wait for a ringi relay on the same database.

With --feeds FILE messages of brokers become events or start runs, as ringi help feed
explains; what is set aside is in --inbox.

The server makes the calls of http steps itself. It does not call addresses of
private networks unless --http-allow names them, as in --http-allow 10.1.0.0/16,
follows no redirects, and takes no proxy from the environment.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.serve(cmd.Context()) },
	}
	cli.SettingFlags(cmd, cli.SetDatabase, cli.SetListen, cli.SetKeys, cli.SetTLSCert, cli.SetTLSKey, cli.SetBehindProxy, cli.SetPublicURL, cli.SetLogFormat, cli.SetOutbox, cli.SetOutboxRoute, cli.SetHTTPAllow, cli.SetFeeds, cli.SetInbox)
	cli.SettingFlags(cmd, cli.TuningSettings()...)
	cli.SettingFlags(cmd, cli.QuotaSettings()...)
	return cmd
}

func (p program) serve(ctx context.Context) error {
	p.Drain()
	if err := p.checkExposure(); err != nil {
		return err
	}
	if err := cli.NoRunsIn(p.Get(cli.SetDatabase)); err != nil {
		return err
	}
	database := p.BesideDatabase()
	keys := p.Path(p.Get(cli.SetKeys))
	log := p.Logger()
	var own []MadeKey
	if !p.Given(cli.SetKeys) {
		own = []MadeKey{Admin(database)}
		keys = database + cli.AdminKeySuffix + "s"
	}
	c := NodeConfig{Database: database, Listen: p.Get(cli.SetListen), Keys: keys, Own: own, Outbox: p.Get(cli.SetOutbox), Routes: p.Get(cli.SetOutboxRoute), Feeds: true, Log: log}
	if value := p.Get(cli.SetDatabase); cli.IsPostgres(value) {
		c.Postgres = value
	}
	n, err := OpenNode(ctx, p.Program, c)
	if err != nil {
		return err
	}
	if len(own) > 0 {
		log.Info("no keys are configured: the admin key is in a file that the other commands find", "file", own[0].File)
		if c.Postgres != "" {
			log.Info("servers that are started elsewhere on this database have keys of their own: give all of them one file with --keys")
		}
	}
	return n.Run(ctx, func(url string) {
		log.Info("listening", "url", url, c.named(), "version", cli.BuildOf().Version)
		if p.Listening != nil {
			p.Listening(url)
		}
	})
}

// checkExposure refuses settings under which a stranger could act, or read keys
// on their way.
func (p program) checkExposure() error {
	cert, key := p.Get(cli.SetTLSCert), p.Get(cli.SetTLSKey)
	if (cert == "") != (key == "") {
		return cli.Usage("give both, or neither", "--tls-cert and --tls-key belong together")
	}
	if cert != "" {
		if _, err := tls.LoadX509KeyPair(p.Path(cert), p.Path(key)); err != nil {
			return cli.Usage("both are files in PEM", "the certificate cannot be used: %v", err)
		}
	}
	if u := p.Get(cli.SetPublicURL); u != "" {
		if parsed, err := url.Parse(u); err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
			return cli.Usage("as in https://ringi.example.com", "the public address %q is not one", u)
		}
	}
	host, _, err := net.SplitHostPort(p.Get(cli.SetListen))
	switch {
	case err != nil:
		return cli.Usage("as in "+cli.DefaultListen, "the address to listen on, %q, is not one: %v", p.Get(cli.SetListen), err)
	case cli.IsLocalHost(host):
		return nil
	case !p.Given(cli.SetKeys):
		return cli.Usage("give --keys FILE (ringi keys new makes its lines), or listen on "+cli.DefaultListen, "others could reach %s, and no keys are configured", p.Get(cli.SetListen))
	case cert == "" && !p.Is(cli.SetBehindProxy):
		return cli.Usage("give --tls-cert and --tls-key, or --behind-proxy if a proxy in front ends TLS", "others could reach %s, and keys would travel in clear text", p.Get(cli.SetListen))
	}
	return nil
}

// openKeys reads a file of keys; a change of it that cannot be read is logged.
func openKeys(c NodeConfig) (*access.Keys, error) {
	keys, err := access.Open(access.Config{File: c.Keys, Trouble: func(err error) {
		if errors.Is(err, access.ErrNoKeys) {
			c.Log.Warn("nobody can use this server: add lines to its file of keys, which ringi keys new makes", "file", c.Keys)
			return
		}
		c.Log.Error("the changed file of keys is not used; what was read last stays in force", "err", err)
	}})
	if err != nil {
		return nil, cli.Usage("a line is: name kind groups scopes sha256; ringi keys new makes one", "%v", err)
	}
	return keys, nil
}
