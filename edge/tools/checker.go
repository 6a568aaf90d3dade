package tools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// Config sets up a Checker. The zero value is ready to use.
type Config struct {
	Tools  int // that one agent may declare; 256
	Schema int // bytes of one schema; 64 KiB

	Time time.Duration // of processors that checks of one principal may take in each second; 250ms
}

// Checker is the checks of one edge, whatever door a call comes through. It keeps schemas compiled. Its methods may be
// called at the same time; but for CheckPaths with resolve, which looks at the disk, they do not block.
type Checker struct {
	cfg     Config
	schemas *cache
	time    *allowance
	count   Stats
}

// Stats counts calls that were refused, by why. All fields may be read at any time.
type Stats struct {
	Unknown atomic.Int64 // the agent has declared tools, but not this one
	Schema  atomic.Int64 // the arguments do not fit
	Allowed atomic.Int64 // what the caller was asked to do does not allow the tool
	Path    atomic.Int64 // a path lies outside of the workspace
	Time    atomic.Int64 // the principal has spent its time of processors; registrations count too
}

// New returns a Checker.
func New(cfg Config) *Checker {
	cfg.Tools = cmp.Or(cfg.Tools, agora.MaxSkills)
	cfg.Schema = cmp.Or(cfg.Schema, MaxSchema)
	cfg.Time = cmp.Or(cfg.Time, 250*time.Millisecond)
	c := &Checker{cfg: cfg, schemas: newCache(cfg.Schema)}
	c.time = newAllowance(cfg.Time, func() { c.count.Time.Add(1) })
	return c
}

// Stats returns the counters. They go on counting.
func (c *Checker) Stats() *Stats { return &c.count }

// Within does what is to be checked for a principal, or an agent where nobody has asked who that is, once it is its
// turn: a few are checked at a time at an edge, principals take turns, and each has [Config.Time] of its own.
// RATE_LIMITED beyond that, and what f returns.
func (c *Checker) Within(ctx context.Context, tenant, principal string, agent agora.AgentID, f func() error) error {
	return c.time.do(ctx, ownerOf(tenant, principal, agent), f)
}

// Compile is [Compile], once for a schema that is asked for again and again, and with the bound of the Checker's
// Config.
func (c *Checker) Compile(schema []byte) (*Schema, error) {
	s, f := c.schemas.compile(schema)
	if f != nil {
		return nil, f.err("schema")
	}
	return s, nil
}

// CheckDeclared returns nil where an agent may declare these tools. Else its error is a *[Refusal] with
// INVALID_REQUEST: there are too many, or a schema can't be used. Its path is that in the envelope of a registration,
// such as /payload/tools/2/input_schema, and its sentence names the place in the schema too.
func (c *Checker) CheckDeclared(tools []agora.Skill) error {
	if len(tools) > c.cfg.Tools {
		return &Refusal{agora.Errorf(agora.InvalidRequest, "tools has more than %d entries", c.cfg.Tools), "/payload/tools"}
	}
	for i, t := range tools {
		if t.Schema == nil {
			continue
		}
		if _, f := c.schemas.compile(t.Schema); f != nil {
			return &Refusal{f.err(fmt.Sprintf("tools[%d].input_schema", i)), "/payload/tools/" + strconv.Itoa(i) + "/input_schema"}
		}
	}
	return nil
}

// CheckCall returns nil where an agent may be asked to run a tool with these arguments, nil for none. callee is its
// card. NOT_FOUND where it has declared tools, but not this one; a *[Refusal] where the arguments do not fit the tool's
// schema, as [Schema.Check] says. One that has declared no tools is not checked, nor are arguments of a tool without a
// schema, or with one that was never checked and can't be used.
func (c *Checker) CheckCall(callee agora.Agent, name string, arguments []byte) error {
	schema, err := c.declared(&callee, name)
	if err != nil || schema == nil {
		return err
	}
	s, f := c.schemas.compile(schema)
	if f != nil {
		return nil // nobody promised that it is one: it came with a card of another dialect
	}
	if r := s.check(arguments); r != nil {
		c.count.Schema.Add(1)
		return r
	}
	return nil
}

// declared returns the schema of a tool; nil where there is none.
func (c *Checker) declared(callee *agora.Agent, name string) ([]byte, error) {
	i := slices.IndexFunc(callee.Tools, func(s agora.Skill) bool { return s.Name == name })
	switch {
	case i >= 0:
		return callee.Tools[i].Schema, nil
	case len(callee.Tools) > 0:
		c.count.Unknown.Add(1)
		return nil, agora.Errorf(agora.NotFound, "Agent '%s' has no tool '%s'", callee.ID, clip(name))
	}
	if i := slices.IndexFunc(callee.Skills, func(s agora.Skill) bool { return s.Name == name }); i >= 0 {
		return callee.Skills[i].Schema, nil // of an agent with paths, which calls it a skill
	}
	return nil, nil
}

// CheckAllowed is [Allows], and counts what is refused.
func (c *Checker) CheckAllowed(open []presence.Execute, q Asked) error {
	err := Allows(open, q)
	if err != nil {
		c.count.Allowed.Add(1)
	}
	return err
}
