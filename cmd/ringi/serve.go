package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/access"
)

func (p *Program) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run a server", Args: cobra.NoArgs,
		Long: `Runs a server. Without --keys it makes one admin key beside the database, which
the other commands find, and then it listens on this machine only. After SIGTERM
or SIGINT it takes in nothing new, ends what is under way within 30 s and exits
with 0; after a second signal it exits at once.

Messages of emit go to the destinations of --outbox, which ringi help relay
explains; --outbox-route 'Order/*=audit' sends some to the one that is named
audit. With --outbox off they wait for a ringi relay on the same database.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.serve(cmd.Context()) },
	}
	settingFlags(cmd, setDatabase, setListen, setKeys, setTLSCert, setTLSKey, setBehindProxy, setPublicURL, setLogFormat, setOutbox, setOutboxRoute)
	settingFlags(cmd, tuningSettings()...)
	return cmd
}

func (p *Program) serve(ctx context.Context) error {
	p.drains.Store(true)
	if err := p.checkExposure(); err != nil {
		return err
	}
	database := p.besideDatabase()
	keys := p.path(p.get(setKeys))
	log := p.logger()
	var own []madeKey
	if !p.given(setKeys) {
		own = []madeKey{admin(database)}
		keys = database + adminKeySuffix + "s"
	}
	c := nodeConfig{database: database, listen: p.get(setListen), keys: keys, own: own, outbox: p.get(setOutbox), routes: p.get(setOutboxRoute), log: log}
	if value := p.get(setDatabase); isPostgres(value) {
		c.postgres = value
	}
	n, err := p.openNode(ctx, c)
	if err != nil {
		return err
	}
	if len(own) > 0 {
		log.Info("no keys are configured: the admin key is in a file that the other commands find", "file", own[0].file)
	}
	return n.run(ctx, func(url string) {
		log.Info("listening", "url", url, c.named(), "version", buildOf().Version)
		if p.Listening != nil {
			p.Listening(url)
		}
	})
}

// checkExposure refuses settings under which a stranger could act, or read keys
// on their way.
func (p *Program) checkExposure() error {
	cert, key := p.get(setTLSCert), p.get(setTLSKey)
	if (cert == "") != (key == "") {
		return usage("give both, or neither", "--tls-cert and --tls-key belong together")
	}
	if cert != "" {
		if _, err := tls.LoadX509KeyPair(p.path(cert), p.path(key)); err != nil {
			return usage("both are files in PEM", "the certificate cannot be used: %v", err)
		}
	}
	if u := p.get(setPublicURL); u != "" {
		if parsed, err := url.Parse(u); err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
			return usage("as in https://ringi.example.com", "the public address %q is not one", u)
		}
	}
	host, _, err := net.SplitHostPort(p.get(setListen))
	switch {
	case err != nil:
		return usage("as in "+defaultListen, "the address to listen on, %q, is not one: %v", p.get(setListen), err)
	case isLocalHost(host):
		return nil
	case !p.given(setKeys):
		return usage("give --keys FILE (ringi keys new makes its lines), or listen on "+defaultListen, "others could reach %s, and no keys are configured", p.get(setListen))
	case cert == "" && !p.is(setBehindProxy):
		return usage("give --tls-cert and --tls-key, or --behind-proxy if a proxy in front ends TLS", "others could reach %s, and keys would travel in clear text", p.get(setListen))
	}
	return nil
}

// logger is the log of a server, on standard error.
func (p *Program) logger() *slog.Logger {
	if p.get(setLogFormat) == outputJSON {
		return slog.New(slog.NewJSONHandler(p.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(p.Stderr, nil))
}

// openKeys reads a file of keys; a change of it that cannot be read is logged.
func openKeys(c nodeConfig) (*access.Keys, error) {
	keys, err := access.Open(access.Config{File: c.keys, Trouble: func(err error) {
		if errors.Is(err, access.ErrNoKeys) {
			c.log.Warn("nobody can use this server: add lines to its file of keys, which ringi keys new makes", "file", c.keys)
			return
		}
		c.log.Error("the changed file of keys is not used; what was read last stays in force", "err", err)
	}})
	if err != nil {
		return nil, usage("a line is: name kind groups scopes sha256; ringi keys new makes one", "%v", err)
	}
	return keys, nil
}
