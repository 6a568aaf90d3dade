package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/edge/policy"
)

// settings are those of every edge, however it is run. Where their values come
// from, origins tells.
type settings struct {
	session   sessionSettings
	spaces    spaceSettings
	mailbox   mailboxSettings
	limits    limitSettings
	admission admissionSettings
	calls     callSettings
	dial      dialSettings
	iat       iatSettings
	aip       aipSettings
	p2p       p2pSettings
	server    serverSettings
	policy    string
	drainRate int
	admin     adminSettings
	tracing   traceSettings
	log       logSettings
}

// flags defines the flags of s, defaults included.
func (s *settings) flags(f *pflag.FlagSet) {
	s.session.flags(f)
	s.spaces.flags(f)
	s.mailbox.flags(f)
	s.limits.flags(f)
	s.admission.flags(f)
	s.calls.flags(f)
	s.iat.flags(f)
	s.aip.flags(f)
	s.p2p.flags(f)
	s.server.flags(f)
	f.StringVar(&s.policy, "policy", "", "file of rules: who may do what; everybody everything if empty")
	f.IntVar(&s.drainRate, "drain.rate", 1000, "agents told to reconnect per second when the edge ends")
	s.admin.flags(f)
	s.tracing.flags(f)
	s.log.flags(f)
}

// faults returns what makes no sense, each by its name.
func (s *settings) faults() []error {
	return slices.Concat(
		s.session.faults(), s.spaces.faults(), s.mailbox.faults(), s.limits.faults(), s.admission.faults(),
		[]error{
			unless(s.admission.queued >= 4*max(s.limits.frame, s.limits.body), "limits.queued must be at least four times limits.frame and limits.body"),
			unless(s.drainRate >= 1, "drain.rate must be at least 1"),
		},
		s.calls.faults(), s.dial.faults(), s.iat.faults(), s.aip.faults(), s.p2p.faults(), s.tracing.faults(), s.server.faults(), s.log.faults(),
	)
}

// checkPolicy returns what is wrong with the file of rules.
func (s *settings) checkPolicy() error {
	if s.policy == "" {
		return nil
	}
	if _, err := policy.Read(s.policy); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	return nil
}

// unless returns the fault that there is when something does not hold.
func unless(holds bool, fault string) error {
	if holds {
		return nil
	}
	return errors.New(fault)
}

// positive returns the faults of those settings that must be more than nothing, and are not.
func positive(all map[string]time.Duration) (faults []error) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		faults = append(faults, unless(all[name] > 0, name+" must be more than nothing"))
	}
	return faults
}

// atLeastOne returns the faults of those settings that must be 1 or more, and are not.
func atLeastOne(all map[string]int64) (faults []error) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		faults = append(faults, unless(all[name] >= 1, name+" must be at least 1"))
	}
	return faults
}

// notNegative returns the faults of those settings that must be 0 or more, and are not.
func notNegative(all map[string]float64) (faults []error) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		faults = append(faults, unless(all[name] >= 0, name+" can't be negative"))
	}
	return faults
}
