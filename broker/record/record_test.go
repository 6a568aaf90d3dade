package record

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

func decodeAll(b []byte) (Origin, []agora.Message, error) {
	var r Reader
	o, n, err := r.Open(b)
	if err != nil {
		return Origin{}, nil, err
	}
	ms := make([]agora.Message, n)
	for i := range ms {
		if err := r.Part(&ms[i]); err != nil {
			return Origin{}, nil, err
		}
	}
	return o, ms, nil
}

func chunk(body string) agora.Message {
	return agora.Message{Part: agora.Chunk, Stream: "stream-1", Body: []byte(body)}
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
	want := Origin{Session: "s1", Epoch: 1 << 60, ValidAt: 1790000000000, From: "agent ☃"}
	for version, parts := range map[byte][]agora.Message{version1: someParts(), version2: newParts(), version3: newestParts()} {
		b := Of(want, parts...)
		if b[0] != version {
			t.Fatalf("version %d, want %d", b[0], version)
		}
		o, ms, err := decodeAll(b)
		if err != nil || o != want || !reflect.DeepEqual(ms, parts) {
			t.Fatalf("got %+v %+v %v", o, ms, err)
		}
		if Count(b) != len(parts) {
			t.Fatalf("countOf = %d, want %d", Count(b), len(parts))
		}
		size := OriginSize(want)
		for i := range ms {
			size += SizeOf(&ms[i])
		}
		if len(b) > size {
			t.Fatalf("record has %d bytes, its bound was %d", len(b), size)
		}
	}
}

func TestARecordOfVersion1IsWrittenAsEver(t *testing.T) {
	// Written down: older edges read it, and newer ones what they have stored.
	const want = "01030102027331016100014b01017300027b7d00024d0201000100903f06696420e298830430302d78017009fbd8c1a28c3405020302056576745f31"
	b := Of(Origin{Session: "s1", Epoch: 1, ValidAt: 2, From: "a"}, someParts()...)
	if got := hex.EncodeToString(b); got != want {
		t.Fatalf("record is %s, want %s", got, want)
	}
}

func TestEachThingThatAVersionLacksRaisesIt(t *testing.T) {
	lacks := map[byte][]agora.Message{version2: newParts()[len(someParts()):], version3: newestParts()[len(newParts()):]}
	for version, parts := range lacks {
		for _, m := range parts {
			if b := Of(Origin{}, append(someParts(), m)...); b[0] != version {
				t.Errorf("%+v is in a record of version %d", m, b[0])
			}
			if b := Of(Origin{}, append([]agora.Message{m}, newParts()...)...); b[0] != version {
				t.Errorf("%+v is in a record of version %d with others behind it", m, b[0])
			}
		}
	}
}

func TestABodyHasOneMediaType(t *testing.T) {
	for _, flags := range []uint64{hasMedia | isText, hasMedia | isOurs, isText | isOurs} {
		b := append(Of(Origin{}), 0, 0) // the kind and the part
		b = binary.AppendUvarint(b, flags)
		b = appendString(b, "image/png")
		b[0] = version2
		if _, _, err := decodeAll(b); !errors.Is(err, ErrBroken) {
			t.Errorf("flags %x: %v, want errRecord", flags, err)
		}
	}
}

func TestFlagsOfAVersionAreNoneOfAnEarlierOne(t *testing.T) {
	for version, parts := range map[byte][]agora.Message{version1: newParts(), version2: newestParts()} {
		b := Of(Origin{Session: "s"}, parts...)
		b[0] = version
		if _, _, err := decodeAll(b); !errors.Is(err, ErrBroken) {
			t.Errorf("as version %d: %v, want errRecord", version, err)
		}
	}
}

func TestARecordTakes256Parts(t *testing.T) {
	ms := make([]agora.Message, MaxParts)
	for i := range ms {
		ms[i].Body = fmt.Append(nil, i)
	}
	b := Of(Origin{}, ms...)
	if _, got, err := decodeAll(b); err != nil || len(got) != MaxParts || Count(b) != MaxParts {
		t.Fatalf("got %d parts, %v", len(got), err)
	}
}

func TestBodiesShareTheRecordsMemory(t *testing.T) {
	b := Of(Origin{}, agora.Message{Body: []byte("body")})
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
	b := Of(Origin{Session: "s"}, someParts()...)
	for n := range b {
		if _, _, err := decodeAll(b[:n]); !errors.Is(err, ErrBroken) {
			t.Fatalf("cut at %d: %v, want errRecord", n, err)
		}
	}
	b[0] = version3 + 1
	if _, _, err := decodeAll(b); !errors.Is(err, ErrVersion) {
		t.Fatalf("err = %v, want errVersion", err)
	}
}

func TestRecordsAreMadeAndReadWithoutAllocating(t *testing.T) {
	ms := []agora.Message{chunk("token"), chunk("token")}
	ms[1].Media, ms[1].Meta.Head = agora.MediaText, []byte("head") // of version 2; a dialect's name is memory of its own
	var w Builder
	var r Reader
	var m agora.Message
	if n := testing.AllocsPerRun(100, func() {
		w.Begin(Origin{Session: "s1", From: "agent-1"})
		w.Add(&ms[0])
		w.Add(&ms[1])
		_, n, _ := r.Open(w.Bytes())
		for range n {
			m = agora.Message{}
			if r.Part(&m) != nil {
				t.Fatal("broken")
			}
		}
	}); n != 0 {
		t.Fatalf("%v allocations, want 0", n)
	}
}

// BenchmarkRecord makes a record of 64 chunks and reads it.
func BenchmarkRecord(b *testing.B) {
	for name, media := range map[string]string{"json": "", "text": agora.MediaText} {
		b.Run(name, func(b *testing.B) {
			m := chunk(strings.Repeat("words ", 20))
			m.N, m.Media = 1000, media
			var w Builder
			var r Reader
			b.ReportAllocs()
			for b.Loop() {
				w.Begin(Origin{Session: "s1", Epoch: 1, ValidAt: 1790000000000, From: "agent-1"})
				for range 64 {
					w.Add(&m)
				}
				_, n, _ := r.Open(w.Bytes())
				for range n {
					var got agora.Message
					if err := r.Part(&got); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(Of(Origin{Session: "s", Epoch: 1, ValidAt: 1, From: "a"}, someParts()...))
	f.Add(Of(Origin{Session: "s", Epoch: 1, ValidAt: 1, From: "a"}, newParts()...))
	f.Add(Of(Origin{Session: "s", Epoch: 1, ValidAt: 1, From: "a"}, newestParts()...))
	f.Add([]byte{version1, 255, 0})
	f.Add([]byte{version2, 255, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, ms, err := decodeAll(b)
		if err != nil {
			return
		}
		o2, ms2, err := decodeAll(Of(o, ms...))
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

func TestWhatMetaCarriesIsBounded(t *testing.T) {
	for name, m := range map[string]agora.Meta{
		"head":    {Dialect: "iat", Head: make([]byte, agora.MaxHead+1)},
		"call":    {Call: strings.Repeat("c", agora.MaxCall+1)},
		"dialect": {Dialect: strings.Repeat("d", agora.MaxDialect+1), Head: []byte{}},
		"request": {Request: strings.Repeat("r", agora.MaxRequest+1)},
	} {
		if CheckMeta(&m) == nil {
			t.Errorf("%s: overlong finds nothing", name)
		}
		b := Of(Origin{}, agora.Message{Meta: m})
		if _, _, err := decodeAll(b); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: reading it returns %v, want errRecord", name, err)
		}
	}
}
