package broker

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

func encode(o origin, ms []agora.Message) []byte {
	b := appendOrigin(nil, o)
	last := ""
	for i := range ms {
		b = appendPart(b, &ms[i], last)
		last = ms[i].Stream
	}
	setCount(b, len(ms))
	return b
}

func decodeAll(b []byte) (origin, []agora.Message, error) {
	var r reader
	o, n, err := r.open(b)
	if err != nil {
		return origin{}, nil, err
	}
	ms := make([]agora.Message, n)
	last := ""
	for i := range ms {
		if err := r.part(&ms[i], last); err != nil {
			return origin{}, nil, err
		}
		last = ms[i].Stream
	}
	return o, ms, nil
}

func someParts() []agora.Message {
	return []agora.Message{
		{Kind: agora.Request, Part: agora.Start, Stream: "s", N: 1, Indexed: true, Body: []byte("{}")},
		{Kind: agora.Request, Part: agora.Chunk, Stream: "s", N: 2, Indexed: true, Index: 1, Body: []byte{}},
		{Kind: agora.Reply, Part: agora.Whole, ID: "id ☃", Media: "text/plain", Again: true, Meta: agora.Meta{
			Trace: "00-x", Parent: "p", Hops: 9, Deadline: time.UnixMilli(1790000000123), Receipts: agora.Stored | agora.Acked}},
		{Kind: agora.Event, Part: agora.End, Stream: "evt_1"},
	}
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	want := origin{session: "s1", epoch: 1 << 60, validAt: 1790000000000, from: "agent ☃"}
	b := encode(want, someParts())
	o, ms, err := decodeAll(b)
	if err != nil || o != want || !reflect.DeepEqual(ms, someParts()) {
		t.Fatalf("got %+v %+v %v", o, ms, err)
	}
	if countOf(b) != 4 {
		t.Fatalf("countOf = %d, want 4", countOf(b))
	}
	size := originRoom(want)
	for i := range ms {
		size += sizeOf(&ms[i])
	}
	if len(b) > size {
		t.Fatalf("record has %d bytes, its bound was %d", len(b), size)
	}
}

func TestARecordTakes256Parts(t *testing.T) {
	ms := make([]agora.Message, maxParts)
	for i := range ms {
		ms[i].Body = fmt.Append(nil, i)
	}
	b := encode(origin{}, ms)
	if _, got, err := decodeAll(b); err != nil || len(got) != maxParts || countOf(b) != maxParts {
		t.Fatalf("got %d parts, %v", len(got), err)
	}
}

func TestBodiesShareTheRecordsMemory(t *testing.T) {
	b := encode(origin{}, []agora.Message{text("body")})
	_, ms, err := decodeAll(b)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, []byte("body"))] = 'B'
	if string(ms[0].Body) != "Body" {
		t.Fatalf("body = %q, want it shared", ms[0].Body)
	}
}

func TestARecordOfAnUnknownVersionIsToldFromABrokenOne(t *testing.T) {
	b := encode(origin{session: "s"}, someParts())
	for n := range b {
		if _, _, err := decodeAll(b[:n]); !errors.Is(err, errRecord) {
			t.Fatalf("cut at %d: %v, want errRecord", n, err)
		}
	}
	b[0] = 2
	if _, _, err := decodeAll(b); !errors.Is(err, errVersion) {
		t.Fatalf("err = %v, want errVersion", err)
	}
}

func TestRecordsAreMadeAndReadWithoutAllocating(t *testing.T) {
	ms := []agora.Message{part(agora.Chunk, "stream-1", "token"), part(agora.Chunk, "stream-1", "token")}
	buf := make([]byte, 0, 1024)
	var r reader
	var m agora.Message
	if n := testing.AllocsPerRun(100, func() {
		buf = appendOrigin(buf[:0], origin{session: "s1", from: "agent-1"})
		buf = appendPart(buf, &ms[0], "")
		buf = appendPart(buf, &ms[1], "stream-1")
		setCount(buf, 2)
		_, n, _ := r.open(buf)
		last := ""
		for range n {
			m = agora.Message{}
			if r.part(&m, last) != nil {
				t.Fatal("broken")
			}
			last = m.Stream
		}
	}); n != 0 {
		t.Fatalf("%v allocations, want 0", n)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(encode(origin{session: "s", epoch: 1, validAt: 1, from: "a"}, someParts()))
	f.Add([]byte{1, 255, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, ms, err := decodeAll(b)
		if err != nil {
			return
		}
		o2, ms2, err := decodeAll(encode(o, ms))
		if err != nil || o2 != o || len(ms2) != len(ms) {
			t.Fatalf("again: %+v, %v", o2, err)
		}
		for i := range ms {
			// a deadline of zero or before 1970 is none, an empty stream too
			ms[i].Meta.Deadline, ms2[i].Meta.Deadline = time.Time{}, time.Time{}
			if !reflect.DeepEqual(ms[i], ms2[i]) {
				t.Fatalf("part %d: %+v, then %+v", i, ms[i], ms2[i])
			}
		}
	})
}

func FuzzSubject(f *testing.F) {
	f.Add("default", "agent 1.*>☃", true)
	f.Add("", "=41", false)
	f.Fuzz(func(t *testing.T, tenant, name string, space bool) {
		if name == "" {
			return
		}
		to := agora.ToAgent(tenant, agora.AgentID(name))
		if space {
			to = agora.ToSpace(tenant, name)
		}
		p := placeOf(to, 7)
		for _, s := range []string{p.log(), p.live} {
			if got, err := addressOf(s); tenant != "" && (err != nil || got != to) {
				t.Fatalf("addressOf(%q) = %+v, %v; want %+v", s, got, err, to)
			}
			if strings.ContainsAny(s, " *>\r\n\t") {
				t.Fatalf("subject %q", s)
			}
		}
		if n := strings.Count(p.fenceOf(name), "."); n != 6 {
			t.Fatalf("fence %q has %d dots", p.fenceOf(name), n)
		}
	})
}

func TestAnAddressStaysWhereItIs(t *testing.T) {
	// Written down: another hash would lose every mailbox.
	for _, c := range []struct {
		to   agora.Address
		want string
	}{
		{agora.ToAgent("default", "agent-1"), "agora.log.default.agent.1.agent-1"},
		{agora.ToSpace("default", "task.42"), "agora.log.default.space.1.task=2E42"},
	} {
		if got := placeOf(c.to, 4).log(); got != c.want {
			t.Errorf("%v at %s, want %s", c.to, got, c.want)
		}
	}
}
