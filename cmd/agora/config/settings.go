// Package config has the settings of edges: their flags, what environment and file say of them, which of the three
// counts, what makes no sense, and what the parts of an edge are set up with because of them. Its commands are those of
// `agora config`.
package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/edge/policy"
)

// Settings are those of every edge, however it is run. Where their values come
// from, origins tells.
type Settings struct {
	session   sessionSettings
	spaces    spaceSettings
	mailbox   mailboxSettings
	limits    limitSettings
	admission admissionSettings
	calls     callSettings
	usage     usageSettings
	dial      dialSettings
	IAT       iatSettings
	AIP       aipSettings
	P2P       p2pSettings
	Server    Server
	Policy    string
	drainRate int
	rebalance int
	Admin     Admin
	Trace     Trace
	Log       logSettings
}

// flags defines the flags of s, defaults included.
func (s *Settings) flags(f *pflag.FlagSet) {
	s.session.flags(f)
	s.spaces.flags(f)
	s.mailbox.flags(f)
	s.limits.flags(f)
	s.admission.flags(f)
	s.calls.flags(f)
	s.usage.flags(f)
	s.IAT.flags(f)
	s.AIP.flags(f)
	s.P2P.flags(f)
	s.Server.flags(f)
	f.StringVar(&s.Policy, "policy", "", "file of rules: who may do what; everybody everything if empty")
	f.IntVar(&s.drainRate, "drain.rate", 1000, "agents told to reconnect per second when the edge ends")
	f.IntVar(&s.rebalance, "rebalance.percent", 1, "of an edge's agents that it tells each minute to reconnect elsewhere, while it has a tenth more than the mean of all edges, and 100 at least; none if 0")
	s.Admin.Flags(f)
	s.Trace.flags(f)
	s.Log.flags(f)
}

// faults returns what makes no sense, each by its name.
func (s *Settings) faults() []error {
	return slices.Concat(
		s.session.faults(), s.spaces.faults(), s.mailbox.faults(), s.limits.faults(), s.admission.faults(),
		[]error{
			unless(s.admission.queued >= 4*max(s.limits.frame, s.limits.body), "limits.queued must be at least four times limits.frame and limits.body"),
			unless(s.drainRate >= 1, "drain.rate must be at least 1"),
			unless(s.rebalance >= 0 && s.rebalance <= 100, "rebalance.percent must be from 0 to 100"),
		},
		s.calls.faults(), s.usage.faults(), s.dial.faults(), s.IAT.faults(), s.AIP.faults(), s.P2P.faults(), s.Trace.faults(), s.Server.faults(), s.Log.faults(),
	)
}

// checkPolicy returns what is wrong with the file of rules.
func (s *Settings) checkPolicy() error {
	if s.Policy == "" {
		return nil
	}
	if _, err := policy.Read(s.Policy); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	return nil
}

// doubts returns what an edge takes, and whoever wrote it can't have meant.
func (s *Settings) doubts() error {
	if s.Policy == "" {
		return nil
	}
	rules, err := policy.Read(s.Policy)
	if err != nil {
		return nil // a fault
	}
	return rules.Unusable()
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
