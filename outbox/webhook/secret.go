package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	secretPrefix    = "whsec_"
	signaturePrefix = "v1,"

	// shortestSecret and longestSecret are the specification's bounds, in bytes.
	shortestSecret = 24
	longestSecret  = 64

	// Tolerance is how old or how far ahead a signature's time may be when it is
	// verified: enough for clocks that differ, too little to replay much.
	Tolerance = 5 * time.Minute

	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
)

// Secret is a key that sender and receiver share. Printing one shows nothing.
type Secret struct{ key []byte }

// ParseSecret reads a secret as it is passed around: "whsec_" and 24 to 64 bytes
// in base64. The error does not repeat it.
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return Secret{}, fmt.Errorf("webhook: a secret begins with %s and goes on in base64; make one with NewSecret, or of 32 random bytes", secretPrefix)
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return Secret{}, errors.New("webhook: the secret is not base64 after its prefix; copy it whole, padding included")
	}
	if len(key) < shortestSecret || len(key) > longestSecret {
		return Secret{}, fmt.Errorf("webhook: the secret has %d bytes, %d to %d are allowed; make one with NewSecret", len(key), shortestSecret, longestSecret)
	}
	return Secret{key: key}, nil
}

// NewSecret makes a secret of 32 random bytes, as text for ParseSecret.
func NewSecret() string {
	key := make([]byte, 32)
	// It never fails; where there is no randomness it ends the program.
	_, _ = rand.Read(key)
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// String hides the secret from logs.
func (Secret) String() string { return secretPrefix + "…" }

// GoString hides the secret from logs.
func (s Secret) GoString() string { return s.String() }

// sign is the signature of one message at one time, with its version.
func (s Secret) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return signaturePrefix + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signatures are those of all secrets, as the header has them.
func signatures(secrets []Secret, id, timestamp string, body []byte) string {
	all := make([]string, len(secrets))
	for i, s := range secrets {
		all[i] = s.sign(id, timestamp, body)
	}
	return strings.Join(all, " ")
}

// Verify tells whether a request was signed with one of the secrets within
// Tolerance of now, and returns its message id. It is for receivers. A message
// that was verified may still be a repeat: keep the ids that were handled.
func Verify(secrets []Secret, header http.Header, body []byte, now time.Time) (id string, err error) {
	id, timestamp := header.Get(headerID), header.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil {
		return "", fmt.Errorf("webhook: %s or %s is missing or cannot be read; this is no signed webhook", headerID, headerTimestamp)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > Tolerance || age < -Tolerance {
		return "", fmt.Errorf("webhook: message %q was signed %s ago; it is a replay, or one of the clocks is wrong", id, age)
	}
	for given := range strings.FieldsSeq(header.Get(headerSignature)) {
		for _, s := range secrets {
			if hmac.Equal([]byte(given), []byte(s.sign(id, timestamp, body))) {
				return id, nil
			}
		}
	}
	return "", fmt.Errorf("webhook: no signature of message %q fits a known secret; it was changed on the way, or signed with another secret", id)
}
