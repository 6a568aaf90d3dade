package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/agora-relay/agora/edge"
)

const (
	seenFor  = time.Minute // for how long credentials are not verified again
	seenMost = 4096        // credentials of one generation; there are two
)

// seen remembers whom credentials that were verified recently name: doors whose every request presents some would
// verify a signature for each. It keeps no credentials, but a hash of them that says nothing outside this process. What
// it says holds until the credentials end, or anything may have been taken back. Those that are refused are not
// remembered, so that nobody can fill it with guesses.
type seen struct {
	secret [sha256.Size]byte

	mu       sync.RWMutex // guards the fields below
	version  uint64       // under which all of them were verified
	now, old map[hash]verified
}

type hash [sha256.Size]byte

// verified is whom credentials name, and until when that is believed.
type verified struct {
	edge.Principal
	until time.Time
}

func newSeen() *seen {
	s := &seen{now: map[hash]verified{}}
	rand.Read(s.secret[:])
	return s
}

// hash returns what credentials are remembered by: all that a door says of them. Those are not whose certificate does
// not come as bytes.
func (s *seen) hash(c edge.Credentials) (sum hash, ok bool) {
	h := sha256.New()
	h.Write(s.secret[:])
	part := func(b []byte) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	part([]byte(c.Token))
	for _, cert := range c.Peer {
		if len(cert.Raw) == 0 {
			return sum, false
		}
		part(cert.Raw)
	}
	h.Sum(sum[:0])
	return sum, true
}

// get returns whom credentials name, if they were verified under this version not long ago and have not ended.
func (s *seen) get(of hash, version uint64) (edge.Principal, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.version != version {
		return edge.Principal{}, false
	}
	v, ok := s.now[of]
	if !ok {
		v, ok = s.old[of]
	}
	return v.Principal, ok && time.Now().Before(v.until)
}

// put notes whom credentials name that were verified under a version.
func (s *seen) put(of hash, version uint64, p edge.Principal) {
	until := time.Now().Add(seenFor)
	if !p.Expires.IsZero() && p.Expires.Before(until) {
		until = p.Expires
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case version < s.version:
		return // something may have been taken back while it was verified
	case version > s.version:
		s.version, s.now, s.old = version, map[hash]verified{}, nil
	case len(s.now) >= seenMost:
		s.now, s.old = make(map[hash]verified, seenMost), s.now
	}
	s.now[of] = verified{p, until}
}
