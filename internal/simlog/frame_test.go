package simlog

import (
	"bytes"
	"testing"
)

// spoken is what client and server say, one frame each, and what is read of it.
var spoken = []frame{
	{raw: []byte("INFO {\"server_id\":\"x\"}\r\n"), op: "INFO"},
	{raw: []byte("\r\n")},
	{raw: []byte("PUB a.b 0\r\n\r\n"), op: "PUB", subject: "a.b"},
	{raw: []byte("pub a.b _INBOX.x 4\r\n\r\n\r\n\r\n"), op: "PUB", subject: "a.b", reply: "_INBOX.x", body: []byte("\r\n\r\n")},
	{raw: []byte("HPUB a r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"), op: "HPUB", subject: "a", reply: "r", header: []byte("NATS/1.0\r\n\r\n"), body: []byte("hi")},
	{raw: []byte("MSG a 7 2\r\nhi\r\n"), op: "MSG", subject: "a", sid: "7", body: []byte("hi")},
	{raw: []byte("MSG\ta  7\tr 2\r\nhi\r\n"), op: "MSG", subject: "a", sid: "7", reply: "r", body: []byte("hi")},
	{raw: []byte("HMSG a 7 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"), op: "HMSG", subject: "a", sid: "7", header: []byte("NATS/1.0 503\r\n\r\n")},
	{raw: []byte("PING\r\n"), op: "PING"},
	{raw: []byte("PUB a\r\n")},
	{raw: []byte("MSG a 2\r\n")},
	{raw: []byte("HPUB a 5 2\r\n")},
	{raw: []byte("PUB a -2\r\n")},
	{raw: []byte("PUB a b c 2\r\n")},
}

func TestFramesAreReadWhereverTheyAreSplit(t *testing.T) {
	var all []byte
	for _, f := range spoken {
		all = append(all, f.raw...)
	}
	for first := range len(all) {
		var got []frame
		var b []byte
		for _, piece := range [][]byte{all[:first], all[first:]} {
			b = append(b, piece...)
			for {
				f, n := split(b)
				if n == 0 {
					break
				}
				got = append(got, f)
				b = b[n:]
			}
		}
		if len(got) != len(spoken) || len(b) > 0 {
			t.Fatalf("split at %d: %d frames and %q, want %d", first, len(got), b, len(spoken))
		}
		for k, want := range spoken {
			same(t, got[k], want)
		}
	}
}

func same(t *testing.T, got, want frame) {
	t.Helper()
	if !bytes.Equal(got.raw, want.raw) || got.op != want.op || got.subject != want.subject || got.reply != want.reply ||
		got.sid != want.sid || !bytes.Equal(got.header, want.header) || !bytes.Equal(got.body, want.body) {
		t.Fatalf("%q is read as %+v", want.raw, got)
	}
}

func TestAHeaderTellsItsStatusAndTheLastOfEachName(t *testing.T) {
	f := frame{header: []byte("NATS/1.0 204 EOB\r\nNats-Sequence: 5\r\nNats-Sequence:  7\r\nX: \r\n\r\n")}
	for name, want := range map[string]string{"Nats-Sequence": "7", "X": "", "Nats": "", "Y": ""} {
		if got := f.value(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := f.status(); got != "204" {
		t.Errorf("status %q, want 204", got)
	}
	for _, header := range []string{"", "NATS/1.0", "NATS/1.0\r\n\r\n", "NATS/1.0\r\nX:"} {
		f := frame{header: []byte(header)}
		if f.status() != "" || f.value("X") != "" {
			t.Errorf("header %q has status %q and a value %q", header, f.status(), f.value("X"))
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range spoken {
		f.Add(s.raw)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, n := split(b)
		if n < 0 || n > len(b) || !bytes.Equal(got.raw, b[:n]) {
			t.Fatalf("%d bytes of %q, raw %q", n, b, got.raw)
		}
		got.value("X")
		got.status()
		kindOf(got.subject)
		if n == 0 {
			return
		}
		if again, m := split(append([]byte(nil), got.raw...)); m != n {
			t.Fatalf("%q alone is another frame: %+v", got.raw, again)
		}
		for k := range n {
			if _, m := split(b[:k:k]); m != 0 {
				t.Fatalf("%q is a frame of %d bytes, and so are %d of them", got.raw, n, m)
			}
		}
		if got.op == "PUB" || got.op == "HPUB" {
			if muted, m := split(mute(&got)); m == 0 || muted.subject != got.subject || muted.reply != "" || !bytes.Equal(muted.body, got.body) {
				t.Fatalf("%q without its reply is %+v", got.raw, muted)
			}
		}
	})
}
