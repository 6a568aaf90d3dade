package config

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/edge/dial"
)

// dialSettings say which of the addresses that agents name an edge dials.
type dialSettings struct{ deny, allow []string }

// flags defines them; besides link-local addresses, denied are what stands in more.
func (s *dialSettings) flags(f *pflag.FlagSet, more []string) {
	f.StringSliceVar(&s.deny, "node.dial-deny", slices.Concat(dial.LinkLocal, more),
		"networks, addresses and hosts (*.example.org) that are not dialled when an agent names them; agora dev denies link-local ones alone, if it is not told")
	f.StringSliceVar(&s.allow, "node.dial-allow", nil, "networks, addresses and hosts that are dialled though node.dial-deny has them")
}

func (s *dialSettings) faults() []error {
	_, err := s.dialer()
	return []error{err}
}

// dialer returns what doors dial agents with.
func (s *dialSettings) dialer() (*dial.Dialer, error) {
	deny, err := dial.ParseList(s.deny)
	if err != nil {
		return nil, fmt.Errorf("node.dial-deny: %w", err)
	}
	allow, err := dial.ParseList(s.allow)
	if err != nil {
		return nil, fmt.Errorf("node.dial-allow: %w", err)
	}
	return dial.New(dial.Config{Deny: &deny, Allow: allow}), nil
}
