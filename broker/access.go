package broker

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Access is how to get into a NATS that does not let everybody in. The zero value gives nothing but what the
// addresses have in them. Files are read again at every connection: what expires can be replaced while an edge runs.
type Access struct {
	Creds          string // nats.creds: file of a user's token and key
	NKey           string // nats.nkey: file of a user's seed
	Token          string // nats.token
	User, Password string // nats.user, nats.password
	CA             string // nats.tls.ca: file of what may have signed a server's certificate; the system's if empty
	Cert, Key      string // nats.tls.cert, nats.tls.key: files of the client's certificate
}

// Check reads the files that a names and returns what is wrong with each, by its setting. It does not connect.
func (a Access) Check() error {
	var errs []error
	for _, f := range []struct {
		setting, path string
		check         func(path string, b []byte) error
	}{
		{"nats.creds", a.Creds, checkCreds},
		{"nats.nkey", a.NKey, checkSeed},
		{"nats.tls.ca", a.CA, checkCA},
	} {
		if f.path == "" {
			continue
		}
		b, err := os.ReadFile(f.path)
		if err == nil {
			err = f.check(f.path, b)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.setting, err))
		}
	}
	if a.Cert != "" || a.Key != "" {
		if _, err := tls.LoadX509KeyPair(a.Cert, a.Key); err != nil {
			errs = append(errs, fmt.Errorf("nats.tls.cert and nats.tls.key: %w", err))
		}
	}
	return errors.Join(errs...)
}

func checkCreds(path string, b []byte) error {
	_, tokenErr := nkeys.ParseDecoratedJWT(b)
	_, keyErr := nkeys.ParseDecoratedNKey(b)
	if tokenErr != nil || keyErr != nil { // what is in there is no matter for a message
		return fmt.Errorf("%s does not hold the token and key of a NATS user", path)
	}
	return nil
}

func checkSeed(path string, b []byte) error {
	key, err := nkeys.ParseDecoratedNKey(b)
	if err != nil {
		return fmt.Errorf("%s does not hold the seed of an NKey", path)
	}
	defer key.Wipe()
	if name, err := key.PublicKey(); err != nil || !nkeys.IsValidPublicUserKey(name) {
		return fmt.Errorf("%s does not hold the seed of a user's NKey", path)
	}
	return nil
}

func checkCA(path string, b []byte) error {
	if !x509.NewCertPool().AppendCertsFromPEM(b) {
		return fmt.Errorf("%s holds no certificate", path)
	}
	return nil
}

// options returns what the connection needs.
func (a Access) options() ([]nats.Option, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	var opts []nats.Option
	if a.Creds != "" {
		opts = append(opts, nats.UserCredentials(a.Creds))
	}
	if a.NKey != "" {
		o, err := nats.NkeyOptionFromSeed(a.NKey)
		if err != nil {
			return nil, fmt.Errorf("nats.nkey: %w", err)
		}
		opts = append(opts, o)
	}
	if a.Token != "" {
		opts = append(opts, nats.Token(a.Token))
	}
	if a.User != "" {
		opts = append(opts, nats.UserInfo(a.User, a.Password))
	}
	if a.CA != "" {
		opts = append(opts, nats.RootCAs(a.CA))
	}
	if a.Cert != "" {
		opts = append(opts, nats.ClientCert(a.Cert, a.Key))
	}
	return opts, nil
}
