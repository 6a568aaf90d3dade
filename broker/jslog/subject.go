package jslog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
)

const (
	LogPrefix   = "agora.log."
	LivePrefix  = "agora.live."
	FencePrefix = "agora.fence."
	AskPrefix   = "agora.ask."
	BookPrefix  = "agora.book."
	BookHint    = LivePrefix + "book" // told of each record of the book: no address has so short a subject
)

// Location is where an address lives: its stream and its subjects. There is one for each agent that listens, so
// only the subject that most of them need is kept; the others differ in how they begin, or end.
type Location struct {
	Stream string
	Live   string // handed on to core subscribers
}

// Log returns the subject of what is stored for the address.
func (p Location) Log() string { return LogPrefix + p.Live[len(LivePrefix):] }

// place returns where to lives among n shards. The shard is taken from a hash that
// never changes: an address must be found where it was left.
func Locate(to agora.Address, shards int) Location {
	tenant, token := agora.EncodeToken(to.Tenant), agora.EncodeToken(to.Name())
	kind := kindOf(to)
	shard := strconv.Itoa(ShardOf(to.Tenant, to.Name(), shards))
	tail := tenant + "." + kind + "." + shard + "."
	return Location{
		Stream: StreamName(kind, shard),
		Live:   LivePrefix + tail + token,
	}
}

// Kinds are what the log keeps apart from each other, in streams of their own.
var Kinds = []string{AgentKind, SpaceKind, CallKind}

const (
	AgentKind = "agent" // mailboxes
	SpaceKind = "space"
	CallKind  = "call" // answer boxes: so a flood of calls fills no mailbox's shard
)

// BookKind is the kind of the one stream that holds no messages: see Book.
const BookKind = "book"

func kindOf(to agora.Address) string {
	switch {
	case to.IsSpace():
		return SpaceKind
	case to.IsBox():
		return CallKind
	}
	return AgentKind
}

// LiveOf returns the live subject of what is stored under a subject.
func LiveOf(log string) string { return LivePrefix + strings.TrimPrefix(log, LogPrefix) }

// Fence returns the fence's subject of a session's lane.
func (p Location) Fence(session string) string {
	tail := p.Live[len(LivePrefix):]
	token := strings.LastIndexByte(tail, '.') + 1
	return FencePrefix + tail[:token] + agora.EncodeToken(session) + "." + tail[token:]
}

// AddressOf returns the address that a log or live subject belongs to.
func AddressOf(subject string) (agora.Address, error) {
	rest, ok := strings.CutPrefix(subject, LogPrefix)
	if !ok {
		rest, ok = strings.CutPrefix(subject, LivePrefix)
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
	case AgentKind:
		return agora.ToAgent(tenant, agora.AgentID(name)), nil
	case SpaceKind:
		return agora.ToSpace(tenant, name), nil
	case CallKind:
		return agora.ToBox(tenant, name, ""), nil
	}
	return agora.Address{}, fmt.Errorf("subject %q: neither agent nor space nor call", subject)
}

// Shard is one stream of messages.
type Shard struct{ Kind, Shard string }

// Shards returns the streams that hold messages, where there are n of each kind.
func Shards(n int) []Shard {
	all := make([]Shard, 0, len(Kinds)*n)
	for _, kind := range Kinds {
		for k := range n {
			all = append(all, Shard{kind, strconv.Itoa(k)})
		}
	}
	return all
}

// Stream returns the stream's name.
func (s Shard) Stream() string { return StreamName(s.Kind, s.Shard) }

// AllOf returns where all addresses of a tenant live in the stream: its subjects have a wildcard.
func (s Shard) AllOf(tenant string) Location {
	return Location{Stream: s.Stream(), Live: LivePrefix + agora.EncodeToken(tenant) + "." + s.Kind + "." + s.Shard + ".*"}
}

// StreamName returns the name of the stream of a kind and a shard, which is empty where there is one alone.
func StreamName(kind, shard string) string {
	if shard == "" {
		return "AGORA_" + strings.ToUpper(kind)
	}
	return "AGORA_" + strings.ToUpper(kind) + "_" + shard
}

// ShardOf is FNV-1a over tenant and name, a zero byte between them.
func ShardOf(tenant, name string, shards int) int {
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
