package broker

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
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
		{Kind: agora.Reply, Part: agora.Whole, ID: "id ☃", Again: true, Meta: agora.Meta{
			Trace: "00-x", Parent: "p", Hops: 9, Deadline: time.UnixMilli(1790000000123), Receipts: agora.Stored | agora.Acked}},
		{Kind: agora.Event, Part: agora.End, Stream: "evt_1"},
	}
}

// newParts are parts that only a record of version 2 can hold, among others.
func newParts() []agora.Message {
	return append(someParts(),
		agora.Message{Part: agora.Chunk, Stream: "evt_1", Media: agora.MediaText, Body: []byte("a word")},
		agora.Message{Part: agora.Chunk, Stream: "evt_1", Media: "image/png", Body: []byte{0xff}},
		agora.ReceiptBody{Tier: agora.Acked, Session: "s", N: 7}.Message(),
		agora.RosterBody{Joined: "a", Members: []agora.AgentID{"a"}}.Message(),
		agora.Message{Kind: agora.Request, Body: []byte("{}"), Meta: agora.Meta{Call: "call 1", Hops: 1}},
		agora.Message{Kind: agora.Request, Meta: agora.Meta{Dialect: "iat", Head: []byte{}}},
		agora.Message{Kind: agora.Reply, Stream: "evt_1", Part: agora.Start, Meta: agora.Meta{
			Trace: "00-x", Call: strings.Repeat("c", agora.MaxCall), Dialect: strings.Repeat("d", agora.MaxDialect), Head: make([]byte, agora.MaxHead)}},
	)
}

// newestParts are parts that only a record of version 3 can hold, among others.
func newestParts() []agora.Message {
	return append(newParts(),
		agora.Message{Kind: agora.Request, Meta: agora.Meta{Request: "r-1 ☃"}},
		agora.Message{Kind: agora.Reply, Meta: agora.Meta{Call: "c", Head: []byte("{}"), Request: strings.Repeat("r", agora.MaxRequest)}},
	)
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	want := origin{session: "s1", epoch: 1 << 60, validAt: 1790000000000, from: "agent ☃"}
	for version, parts := range map[byte][]agora.Message{version1: someParts(), version2: newParts(), version3: newestParts()} {
		b := encode(want, parts)
		if b[0] != version {
			t.Fatalf("version %d, want %d", b[0], version)
		}
		o, ms, err := decodeAll(b)
		if err != nil || o != want || !reflect.DeepEqual(ms, parts) {
			t.Fatalf("got %+v %+v %v", o, ms, err)
		}
		if countOf(b) != len(parts) {
			t.Fatalf("countOf = %d, want %d", countOf(b), len(parts))
		}
		size := originRoom(want)
		for i := range ms {
			size += sizeOf(&ms[i])
		}
		if len(b) > size {
			t.Fatalf("record has %d bytes, its bound was %d", len(b), size)
		}
	}
}

func TestARecordOfVersion1IsWrittenAsEver(t *testing.T) {
	// Written down: older edges read it, and newer ones what they have stored.
	const want = "01030102027331016100014b01017300027b7d00024d0201000100903f06696420e298830430302d78017009fbd8c1a28c3405020302056576745f31"
	b := encode(origin{session: "s1", epoch: 1, validAt: 2, from: "a"}, someParts())
	if got := hex.EncodeToString(b); got != want {
		t.Fatalf("record is %s, want %s", got, want)
	}
}

func TestEachThingThatAVersionLacksRaisesIt(t *testing.T) {
	lacks := map[byte][]agora.Message{version2: newParts()[len(someParts()):], version3: newestParts()[len(newParts()):]}
	for version, parts := range lacks {
		for _, m := range parts {
			if b := encode(origin{}, append(someParts(), m)); b[0] != version {
				t.Errorf("%+v is in a record of version %d", m, b[0])
			}
			if b := encode(origin{}, append([]agora.Message{m}, newParts()...)); b[0] != version {
				t.Errorf("%+v is in a record of version %d with others behind it", m, b[0])
			}
		}
	}
}

func TestABodyHasOneMediaType(t *testing.T) {
	for _, flags := range []uint64{hasMedia | isText, hasMedia | isOurs, isText | isOurs} {
		b := append(appendOrigin(nil, origin{}), 0, 0) // the kind and the part
		b = binary.AppendUvarint(b, flags)
		b = appendString(b, "image/png")
		b[0] = version2
		if _, _, err := decodeAll(b); !errors.Is(err, errRecord) {
			t.Errorf("flags %x: %v, want errRecord", flags, err)
		}
	}
}

func TestFlagsOfAVersionAreNoneOfAnEarlierOne(t *testing.T) {
	for version, parts := range map[byte][]agora.Message{version1: newParts(), version2: newestParts()} {
		b := encode(origin{session: "s"}, parts)
		b[0] = version
		if _, _, err := decodeAll(b); !errors.Is(err, errRecord) {
			t.Errorf("as version %d: %v, want errRecord", version, err)
		}
	}
}

func TestWhatMetaCarriesIsBounded(t *testing.T) {
	head := agora.Meta{Dialect: "iat", Head: make([]byte, agora.MaxHead+1)}
	call := agora.Meta{Call: strings.Repeat("c", agora.MaxCall+1)}
	dialect := agora.Meta{Dialect: strings.Repeat("d", agora.MaxDialect+1), Head: []byte{}}
	request := agora.Meta{Request: strings.Repeat("r", agora.MaxRequest+1)}
	for _, m := range []agora.Meta{head, call, dialect, request} {
		b := encode(origin{}, []agora.Message{{Meta: m}})
		if _, _, err := decodeAll(b); !errors.Is(err, errRecord) {
			t.Errorf("reading: %v, want errRecord", err)
		}
	}
	b := testBroker(t, testServer(t, 1), nil)
	cfg := lane("s", 1, false)
	cfg.To = bob
	l := b.Lane(cfg)
	for _, q := range []struct {
		code agora.Code
		meta agora.Meta
	}{{agora.MessageTooLarge, head}, {agora.InvalidRequest, call}, {agora.InvalidRequest, request}} {
		msg := agora.Message{To: bob, Body: []byte("{}"), Meta: q.meta}
		wantCode(t, put(t, l, msg), q.code)
		if _, err := b.Publish(t.Context(), "k", msg); agora.AsError(err).Code != q.code {
			t.Errorf("Publish = %v, want %s", err, q.code)
		}
	}
	msg := agora.Message{To: bob, Meta: agora.Meta{Request: "r-1", Call: "box", Dialect: "iat", Head: []byte("head")}}
	if r := put(t, l, msg); r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := listen(t, b, bob, From{}).quiet(t); len(got) != 1 || !reflect.DeepEqual(got[0].Meta, msg.Meta) {
		t.Fatalf("got %+v", got)
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
	b[0] = version3 + 1
	if _, _, err := decodeAll(b); !errors.Is(err, errVersion) {
		t.Fatalf("err = %v, want errVersion", err)
	}
}

func TestRecordsAreMadeAndReadWithoutAllocating(t *testing.T) {
	ms := []agora.Message{part(agora.Chunk, "stream-1", "token"), part(agora.Chunk, "stream-1", "token")}
	ms[1].Media, ms[1].Meta.Head = agora.MediaText, []byte("head") // of version 2; a dialect's name is memory of its own
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

// BenchmarkRecord makes a record of 64 chunks and reads it.
func BenchmarkRecord(b *testing.B) {
	for name, media := range map[string]string{"json": "", "text": agora.MediaText} {
		b.Run(name, func(b *testing.B) {
			m := part(agora.Chunk, "stream-1", strings.Repeat("words ", 20))
			m.N, m.Media = 1000, media
			buf := make([]byte, 0, 16<<10)
			var r reader
			b.ReportAllocs()
			for b.Loop() {
				buf = appendOrigin(buf[:0], origin{session: "s1", epoch: 1, validAt: 1790000000000, from: "agent-1"})
				for range 64 {
					buf = appendPart(buf, &m, "stream-1")
				}
				setCount(buf, 64)
				_, n, _ := r.open(buf)
				for range n {
					var got agora.Message
					if err := r.part(&got, "stream-1"); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(encode(origin{session: "s", epoch: 1, validAt: 1, from: "a"}, someParts()))
	f.Add(encode(origin{session: "s", epoch: 1, validAt: 1, from: "a"}, newParts()))
	f.Add(encode(origin{session: "s", epoch: 1, validAt: 1, from: "a"}, newestParts()))
	f.Add([]byte{version1, 255, 0})
	f.Add([]byte{version2, 255, 0})
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
