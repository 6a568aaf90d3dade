package approval

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// version begins the body of every record.
const version = 1

// What a decision says.
const (
	saysDenied byte = iota
	saysApproved
	saysExpired

	saysMail byte = 0x80 // with one of them: the asker is told by mail
)

var errRecord = errors.New("a record of an approval can't be read")

// appendRequest appends the record of what is asked: it expires after some time.
func appendRequest(b []byte, a *Approval, within time.Duration) []byte {
	b = append(b, version)
	b = binary.AppendUvarint(b, uint64(within/time.Millisecond))
	b = appendText(b, a.ID)
	b = appendText(b, string(a.Agent))
	b = appendText(b, string(a.To))
	b = appendText(b, a.Trace)
	b = appendBytes(b, a.Head)
	return appendBytes(b, a.Request)
}

// parseRequest returns the approval that an entry of the book opens.
func parseRequest(e *broker.Entry) (*Approval, error) {
	r := fields{rest: e.Body}
	r.version()
	within := r.number()
	a := &Approval{Tenant: e.Tenant, Seq: e.Seq, Owner: e.Label, Asked: e.Time, State: Pending}
	a.ID, a.Agent, a.To, a.Trace = r.text(), agora.AgentID(r.text()), agora.AgentID(r.text()), r.text()
	a.Head, a.Request = r.bytes(), r.bytes()
	if r.bad || len(r.rest) > 0 || within > uint64(1<<53) || Box(a.Tenant, a.Agent, a.ID) != e.Name {
		return nil, errRecord
	}
	a.Expires = a.Asked.Add(time.Duration(min(within, 1<<40)) * time.Millisecond)
	return a, nil
}

// appendVerdict appends the record of a decision.
func appendVerdict(b []byte, says byte, v *Verdict, mail bool) []byte {
	if mail {
		says |= saysMail
	}
	b = append(b, version, says)
	b = appendText(b, v.By)
	b = appendText(b, v.Note)
	return appendBytes(b, v.Answer)
}

// decide returns the approval as an entry of the book decides it. One that comes too late by the clock of the log
// changes nothing: what nobody has decided in time is not approved, whoever has stored that.
func (a *Approval) decide(e *broker.Entry) (*Approval, error) {
	r := fields{rest: e.Body}
	r.version()
	says := r.byte()
	d := *a
	d.Mail = says&saysMail != 0
	says &^= saysMail
	d.Decided = e.Time
	d.By, d.Note, d.Answer = r.text(), r.text(), r.bytes()
	if r.bad || len(r.rest) > 0 || says > saysExpired {
		return nil, errRecord
	}
	switch {
	case says == saysExpired || e.Time.After(a.Expires):
		d.State, d.By, d.Note, d.Answer = Expired, string(agora.Cluster), "", nil
	case says == saysApproved:
		d.State = Approved
	default:
		d.State = Denied
	}
	return &d, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendBytes keeps nil apart from nothing.
func appendBytes(b, s []byte) []byte {
	if s == nil {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(s))+1), s...)
}

// fields reads a record.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) version() { f.bad = f.byte() != version }

func (f *fields) byte() byte {
	if b := f.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) number() uint64 {
	n, size := binary.Uvarint(f.rest)
	if size <= 0 {
		f.bad = true
		return 0
	}
	f.rest = f.rest[size:]
	return n
}

func (f *fields) take(n uint64) []byte {
	if n > uint64(len(f.rest)) {
		f.bad, f.rest = true, nil
		return nil
	}
	b := f.rest[:n:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) text() string { return string(f.take(f.number())) }

func (f *fields) bytes() []byte {
	n := f.number()
	if n == 0 {
		return nil
	}
	return f.take(n - 1)
}
