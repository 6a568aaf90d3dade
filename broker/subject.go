package broker

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
)

const (
	logPrefix   = "agora.log."
	livePrefix  = "agora.live."
	fencePrefix = "agora.fence."
	askPrefix   = "agora.ask."
	bookPrefix  = "agora.book."
	bookHint    = livePrefix + "book" // told of each record of the book: no address has so short a subject
)

// location is where an address lives: its stream and its subjects. There is one for each agent that listens, so
// only the subject that most of them need is kept; the others differ in how they begin, or end.
type location struct {
	stream string
	live   string // handed on to core subscribers
}

// log returns the subject of what is stored for the address.
func (p location) log() string { return logPrefix + p.live[len(livePrefix):] }

// place returns where to lives among n shards. The shard is taken from a hash that
// never changes: an address must be found where it was left.
func locate(to agora.Address, shards int) location {
	tenant, token := agora.EncodeToken(to.Tenant), agora.EncodeToken(to.Name())
	kind := kindOf(to)
	shard := strconv.Itoa(shardOf(to.Tenant, to.Name(), shards))
	tail := tenant + "." + kind + "." + shard + "."
	return location{
		stream: streamName(kind, shard),
		live:   livePrefix + tail + token,
	}
}

// kinds are what the log keeps apart from each other, in streams of their own.
var kinds = []string{agentKind, spaceKind, callKind}

const (
	agentKind = "agent" // mailboxes
	spaceKind = "space"
	callKind  = "call" // answer boxes: so a flood of calls fills no mailbox's shard
)

// bookKind is the kind of the one stream that holds no messages: see Book.
const bookKind = "book"

func kindOf(to agora.Address) string {
	switch {
	case to.IsSpace():
		return spaceKind
	case to.IsBox():
		return callKind
	}
	return agentKind
}

// fenceOf returns the fence's subject of a session's lane.
func (p location) fenceOf(session string) string {
	tail := p.live[len(livePrefix):]
	token := strings.LastIndexByte(tail, '.') + 1
	return fencePrefix + tail[:token] + agora.EncodeToken(session) + "." + tail[token:]
}

// addressOf returns the address that a log or live subject belongs to.
func addressOf(subject string) (agora.Address, error) {
	rest, ok := strings.CutPrefix(subject, logPrefix)
	if !ok {
		rest, ok = strings.CutPrefix(subject, livePrefix)
	}
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 4 {
		return agora.Address{}, fmt.Errorf("subject %q names no address", subject)
	}
	tenant, err := agora.DecodeToken(parts[0])
	if err != nil {
		return agora.Address{}, fmt.Errorf("subject %q: tenant: %w", subject, err)
	}
	name, err := agora.DecodeToken(parts[3])
	if err != nil || name == "" {
		return agora.Address{}, fmt.Errorf("subject %q: name is not a token", subject)
	}
	switch parts[1] {
	case agentKind:
		return agora.ToAgent(tenant, agora.AgentID(name)), nil
	case spaceKind:
		return agora.ToSpace(tenant, name), nil
	case callKind:
		return agora.ToBox(tenant, name, ""), nil
	}
	return agora.Address{}, fmt.Errorf("subject %q: neither agent nor space nor call", subject)
}

func streamName(kind, shard string) string {
	if shard == "" {
		return "AGORA_" + strings.ToUpper(kind)
	}
	return "AGORA_" + strings.ToUpper(kind) + "_" + shard
}

// shardOf is FNV-1a over tenant and name, a zero byte between them.
func shardOf(tenant, name string, shards int) int {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	for i := range len(tenant) {
		h = (h ^ uint64(tenant[i])) * prime
	}
	h *= prime
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	return int(h % uint64(shards))
}
