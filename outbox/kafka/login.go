package kafka

import (
	"crypto/tls"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// The mechanisms of a Login, by their SASL names.
const (
	Plain       = "PLAIN" // sends the password as it is: only over TLS
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
)

// Login is a user with a password. Printing one shows no password.
type Login struct {
	Mechanism string // one of the constants; empty means ScramSHA512
	User      string
	Password  string
}

// String hides the password from logs.
func (l Login) String() string { return l.User }

// GoString hides the password from logs.
func (l Login) GoString() string { return l.User }

// ClientOptions are the options of a client that speaks TLS, unless config is nil,
// and logs in, unless the login has no user: for consumers of what a sink writes.
func ClientOptions(config *tls.Config, login Login) ([]kgo.Opt, error) {
	options, err := login.options()
	if config != nil {
		options = append(options, kgo.DialTLSConfig(config))
	}
	return options, err
}

// options make the client log in; none without a user.
func (l Login) options() ([]kgo.Opt, error) {
	if l == (Login{}) {
		return nil, nil
	}
	if l.User == "" {
		return nil, fmt.Errorf("kafka: a login has a mechanism or a password but no user; set User")
	}
	switch l.Mechanism {
	case Plain:
		return []kgo.Opt{kgo.SASL(plain.Auth{User: l.User, Pass: l.Password}.AsMechanism())}, nil
	case ScramSHA256:
		return []kgo.Opt{kgo.SASL(scram.Auth{User: l.User, Pass: l.Password}.AsSha256Mechanism())}, nil
	case "", ScramSHA512:
		return []kgo.Opt{kgo.SASL(scram.Auth{User: l.User, Pass: l.Password}.AsSha512Mechanism())}, nil
	}
	return nil, fmt.Errorf("kafka: login mechanism %q is not known; use %s, %s or %s", l.Mechanism, Plain, ScramSHA256, ScramSHA512)
}
