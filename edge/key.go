package edge

import (
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
)

// Key makes an idempotency key of a client's id and of what it said: sent
// again it is the same message, with other content it is another one. It is
// empty where id is.
func Key(id string, said ...[]byte) string {
	if id == "" {
		return ""
	}
	h := uint64(fnvOffset)
	for _, b := range said {
		for _, c := range b {
			h = (h ^ uint64(c)) * fnvPrime
		}
		h = (h ^ 0xff) * fnvPrime // never part of UTF-8, so that parts can't run into each other
	}
	var room [128]byte
	return string(strconv.AppendUint(append(append(room[:0], id...), keyMark...), h, 36))
}

// The hash of a key is FNV-1a, of 64 bits. hash/fnv would have each part of what was said allocated.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// EventKey is [Key] of an event, whose data is what the client wrote: what the cluster adds to it, the time for one, is
// not the same when the client sends it again. Without an id the number n names it, where there is one.
func EventKey(id string, n uint64, data []byte) string {
	if id == "" && n > 0 {
		id = reserved + strconv.FormatUint(n, 10)
	}
	return Key(id, data)
}

var errReserved = agora.Errorf(agora.InvalidRequest, "stream_id and id must not hold the character U+0000")

// reserved is the character that no client's name may hold: the cluster's own
// names are told from them by it.
const reserved = "\x00"

// keyMark stands between a client's id and the content's hash.
const keyMark = reserved

// peerAddress is the address that presence's name of a peer stands for: an
// agent, or a space behind a mark that no id begins with.
func peerAddress(tenant string, peer agora.AgentID) agora.Address {
	if name, ok := strings.CutPrefix(string(peer), spaceMark); ok {
		return agora.ToSpace(tenant, name)
	}
	return agora.ToAgent(tenant, peer)
}

const spaceMark = reserved
