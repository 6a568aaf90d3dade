package cli

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/cmd/agora/access"
	"github.com/agora-relay/agora/cmd/agora/config"
)

// ownEdge is the edge on this machine, or in this container, as it learns where its admin port is: by environment, or
// by the file of AGORA_CONFIG. So an operator who is there need not say it again.
type ownEdge struct {
	addr string
	tls  config.TLS
	config.Admin
	faults error // what is wrong with environment or file; what is right counts nevertheless
}

// findOwnEdge reads the settings of the edge on this machine.
func findOwnEdge() *ownEdge {
	var e ownEdge
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.FileFlag(f)
	f.StringVar(&e.addr, "admin-addr", config.DefaultAdmin, "")
	e.tls.Flags(f, "admin.tls", "")
	e.Admin.Flags(f)
	_, e.faults = config.Fill(f, os.LookupEnv)
	return &e
}

// url is where the edge's admin port is.
func (e *ownEdge) url() string {
	if e.tls.Cert != "" {
		return "https://" + config.Nearby(e.addr)
	}
	return "http://" + config.Nearby(e.addr)
}

// secure returns how to speak TLS with the edge: it must present the certificate that stands in its file, which is
// presented to it, too, unless who asks has another. nil without TLS.
func (e *ownEdge) secure(asks *access.Trust) (*tls.Config, error) {
	if e.tls.Cert == "" {
		return nil, nil
	}
	own, err := tls.LoadX509KeyPair(e.tls.Cert, e.tls.Key)
	if err != nil {
		return nil, fmt.Errorf("admin.tls.cert: %w", err)
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own},
		InsecureSkipVerify: true, // it is compared instead: the certificate's names are seldom those of loopback
		VerifyConnection: func(s tls.ConnectionState) error {
			if !bytes.Equal(s.PeerCertificates[0].Raw, own.Certificate[0]) {
				return errors.New("the port does not present the certificate of admin.tls.cert: say where to ask by --admin and --ca")
			}
			return nil
		},
	}
	if asks.Cert != "" {
		c.Certificates, c.GetClientCertificate = nil, asks.Own
	}
	return c, nil
}
