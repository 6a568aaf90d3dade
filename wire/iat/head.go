package iat

import (
	"encoding/binary"
	"strconv"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// Dialect is what a message that came as an envelope has as its Meta.Dialect, and an agent that is behind this door as its Dialect.
const Dialect = "iat"

// A head is the header and the metadata of an envelope, as they are stored beside its payload: a version, the length of the
// header in four bytes, the header, and the metadata where there are some.
const (
	headVersion = 1
	headPrefix  = 1 + 4
)

// AppendHead appends what is stored in Meta.Head: header and metadata byte for byte, but that header.from is the bound id, that
// metadata.ttl is one less, that auth_token, receipts, deadline_ms, redelivered and workspace_root are taken out, and that
// workspace_root is root where that is not empty. It allocates nothing when dst has room. e must have been decoded, and
// its bytes be unchanged. Of what [Decode] takes, and a root that [Envelope.Registration] takes, the head has less than
// agora.MaxHead bytes.
func (e *Envelope) AppendHead(dst []byte, from agora.AgentID, root string) []byte {
	dst = append(dst, headVersion, 0, 0, 0, 0)
	began := len(dst)
	dst = e.splice.appendHeader(dst, from)
	binary.BigEndian.PutUint32(dst[began-4:], uint32(len(dst)-began))
	if e.splice.metadata == nil {
		if root == "" {
			return dst
		}
		return append(rawjson.AppendString(append(dst, `{"workspace_root":`...), root), '}')
	}
	dst = e.splice.appendMetadata(dst, e.TTL)
	if root == "" {
		return dst
	}
	dst = dst[:len(dst)-1]
	if e.splice.members > 0 {
		dst = append(dst, ',')
	}
	return append(rawjson.AppendString(append(dst, `"workspace_root":`...), root), '}')
}

// HeadSize returns how much room AppendHead takes, or a little less where an id or a root is escaped.
func (e *Envelope) HeadSize(from agora.AgentID, root string) int {
	const more = len(`{"from":"",`) + len(`,"workspace_root":""}`)
	return headPrefix + len(e.splice.header) + len(e.splice.metadata) + len(from) + len(root) + more
}

// readHead returns what AppendHead has put into a head; false where it is none.
func readHead(head []byte) (header, metadata []byte, ok bool) {
	if len(head) < headPrefix || head[0] != headVersion {
		return nil, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(head[1:]))
	rest := head[headPrefix:]
	if n > uint64(len(rest)) {
		return nil, nil, false
	}
	header, metadata = rest[:n], rest[n:]
	return header, metadata, isObject(header) && (len(metadata) == 0 || isObject(metadata))
}

func isObject(b []byte) bool { return len(b) >= 2 && b[0] == '{' && b[len(b)-1] == '}' }

// appendHeader appends the header with its bound sender.
func (s *splice) appendHeader(dst []byte, from agora.AgentID) []byte {
	if s.from.to == 0 { // there is a member behind the brace: every header has some
		dst = rawjson.AppendString(append(dst, `{"from":`...), string(from))
		return append(append(dst, ','), s.header[1:]...)
	}
	dst = append(dst, s.header[:s.from.from]...)
	dst = rawjson.AppendString(dst, string(from))
	return append(dst, s.header[s.from.to:]...)
}

// appendMetadata appends the metadata without what is cut, and with one hop less.
func (s *splice) appendMetadata(dst []byte, ttl uint64) []byte {
	at, hop := 0, s.ttl
	for _, c := range s.cuts[:s.ncuts] {
		if at <= hop.from && hop.from < c.from && ttl > 0 {
			dst = s.appendHop(dst, at, ttl)
			at = hop.to
		}
		dst = append(dst, s.metadata[at:c.from]...)
		at = c.to
	}
	if at <= hop.from && ttl > 0 {
		dst = s.appendHop(dst, at, ttl)
		at = hop.to
	}
	return append(dst, s.metadata[at:]...)
}

func (s *splice) appendHop(dst []byte, at int, ttl uint64) []byte {
	dst = append(dst, s.metadata[at:s.ttl.from]...)
	return strconv.AppendUint(dst, ttl-1, 10)
}

// cut notes that a member of metadata is taken out. before is where what precedes its comma ends.
func (s *splice) cut(before, key, end int) {
	if s.members > 0 {
		s.cuts[s.ncuts] = span{before, end}
		s.ncuts++
		return
	}
	if s.ncuts == 0 { // nothing stays before it: its white space does
		s.cuts[0] = span{key, end}
		s.ncuts = 1
	}
	s.cuts[0].to = end
}

// stay notes that a member of metadata, whose key begins there, stays.
func (s *splice) stay(key int) {
	if s.members == 0 && s.ncuts > 0 {
		s.cuts[0].to = key // and with it the comma between
	}
	s.members++
}

// size returns how much of header and metadata is forwarded.
func (s *splice) size() int {
	n := len(s.header) + len(s.metadata)
	for _, c := range s.cuts[:s.ncuts] {
		n -= c.to - c.from
	}
	return n
}
