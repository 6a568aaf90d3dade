package iat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// An edge gives again what stands behind the position that it was told, though the program is done with it by the time
// it comes.
func TestWhatIsDoneWhileAConnectionIsMadeIsNotTakenAgain(t *testing.T) {
	var m marks
	m.begin(10)
	for _, seq := range []uint64{11, 12, 13} {
		m.given(seq, fmt.Sprint(seq))
	}
	told, _ := m.position()
	m.connected(told)
	m.done(11)
	m.done(12)
	for _, seq := range []uint64{11, 12, 13} { // in order, as an edge gives them
		if m.given(seq, fmt.Sprint(seq)) {
			t.Errorf("%d is taken again", seq)
		}
	}
	m.done(13)
	if got, _ := m.position(); got != 13 || len(m.open) > 0 {
		t.Errorf("position %d, and %d are kept in mind; want 13, and none", got, len(m.open))
	}
	m.connected(13)
	if !m.given(3, "new") || !m.given(4, "new") { // in a mailbox that began again
		t.Error("what stands in a new mailbox is not taken")
	}
	m.done(3)
	if got, _ := m.position(); got != 3 {
		t.Errorf("position %d in a new mailbox, want 3", got)
	}
}

func TestMarksAreWhatIsDoneWithoutAHole(t *testing.T) {
	var m marks
	if _, known := m.position(); known {
		t.Error("a position is known before there is one")
	}
	m.begin(10)
	for _, seq := range []uint64{11, 15, 20} {
		if !m.given(seq, "x") {
			t.Errorf("%d is taken for given before", seq)
		}
	}
	for _, c := range []struct {
		done, want uint64
	}{{15, 10}, {11, 15}, {11, 15}, {99, 15}, {20, 20}} {
		m.done(c.done)
		if got, _ := m.position(); got != c.want {
			t.Errorf("after %d is done: position %d, want %d", c.done, got, c.want)
		}
	}
	m.given(30, "x")
	if m.given(30, "x") || !m.given(30, "y") {
		t.Error("what was given before is what has its position and its id")
	}
	if !m.given(4, "x") {
		t.Error("what stands in a mailbox that began anew is taken for given before")
	}
	for seq := range uint64(maxMarks + 10) {
		m.given(100+seq, "x")
	}
	if got, _ := m.position(); got < 100 || len(m.open) > maxMarks {
		t.Errorf("%d are kept in mind, up to %d; want %d at most", len(m.open), got, maxMarks)
	}
}

func TestPiecesAreSentInOrderAndCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	var sent []string // by one goroutine at a time
	under, goOn := make(chan struct{}), make(chan struct{})
	p := newPieces(func(text string) error {
		if sent = append(sent, text); len(sent) == 1 {
			close(under)
			<-goOn
		}
		return nil
	})
	all := "first"
	p.write(all)
	await.Recv(t, "the first piece", under)
	for i := range 30_000 {
		c := string([]rune{'é', '€', '😀'}[i%3])
		all += c
		p.write(c[:1]) // half characters, too
		p.write(c[1:])
		if i == 15_000 { // before it blocks
			close(goOn)
		}
	}
	if err := p.end(); err != nil || strings.Join(sent, "") != all {
		t.Fatalf("%d pieces do not make the text; %v", len(sent), err)
	}
	for i, text := range sent {
		if !utf8.ValidString(text) || len(text) > pieceBytes {
			t.Errorf("piece %d has %d bytes, valid %v", i, len(text), utf8.ValidString(text))
		}
	}
}

func TestAPieceThatFailsIsTheLast(t *testing.T) {
	t.Parallel()
	broken, n := errors.New("broken"), 0
	p := newPieces(func(string) error { n++; return broken })
	p.write("a")
	if err := p.flush(); err != broken {
		t.Errorf("flush = %v, want %v", err, broken)
	}
	if err := p.write("b"); err != broken {
		t.Errorf("write = %v, want %v", err, broken)
	}
	if err := p.end(); err != broken || n != 1 {
		t.Errorf("end = %v after %d pieces, want %v after one", err, n, broken)
	}
}

func TestFunctionsOfOneKeyRunInOrderAndAFewAtATime(t *testing.T) {
	t.Parallel()
	const keys, each, most = 20, 50, 3
	d := newDispatcher(Config{Handlers: most, MaxBuffered: 16 << 10})
	var mu sync.Mutex
	var running, highest atomic.Int32
	got := map[string][]int{}
	for i := range keys * each {
		key := fmt.Sprint(i % keys)
		d.add(t.Context(), key, 100, func() {
			if n := running.Add(1); n > highest.Load() {
				highest.Store(n)
			}
			defer running.Add(-1)
			mu.Lock()
			defer mu.Unlock()
			got[key] = append(got[key], i)
		})
	}
	d.wait()
	for key, order := range got {
		if len(order) != each || !slices.IsSorted(order) {
			t.Errorf("key %s: %v, want %d in order", key, order, each)
		}
	}
	if highest.Load() > most {
		t.Errorf("%d ran at a time, want %d at most", highest.Load(), most)
	}
}

func TestADispatcherThatIsFullTakesNoMoreUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(Config{Handlers: 1, MaxBuffered: 10 << 10})
		hold := make(chan struct{})
		d.add(t.Context(), "a", 1<<20, func() { <-hold }) // alone anything fits
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if d.add(ctx, "b", 1, func() {}) {
			t.Error("it takes more than it may")
		}
		close(hold)
		if !d.add(t.Context(), "b", 1, func() {}) {
			t.Error("it takes nothing when there is room again")
		}
		d.wait()
	})
}

func TestWhatIsTriedAgainWaitsAsItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{urls: []string{"a", "b"}, cfg: Config{Patience: time.Minute}.withDefaults()}
		y := trier{c: c}
		begin := time.Now()
		if err := y.again(t.Context(), &Error{Code: agora.RateLimited, RetryAfter: 7 * time.Second}); err != nil || time.Since(begin) != 7*time.Second {
			t.Errorf("again = %v after %v, want nil after 7s", err, time.Since(begin))
		}
		late := &Error{Code: agora.Unavailable, RetryAfter: 2 * time.Minute}
		if err := y.again(t.Context(), late); err != late {
			t.Errorf("again = %v for what comes too late, want it back", err)
		}
		forbidden := &Error{Code: agora.Forbidden}
		if err := y.again(t.Context(), forbidden); err != forbidden {
			t.Errorf("again = %v for what does not pass, want it back", err)
		}
		y = trier{c: c}
		if err := y.again(t.Context(), &Error{Code: agora.Unavailable}); err != nil || c.edge() != "b" && c.edge() != "a" {
			t.Errorf("again = %v, want another edge at once", err)
		}
		y = trier{c: c}
		begin = time.Now()
		var err error
		for err == nil {
			err = y.again(t.Context(), &Error{Code: agora.Unavailable})
		}
		if d := time.Since(begin); d > time.Minute || d < 30*time.Second {
			t.Errorf("it gave up after %v, want about a minute", d)
		}
	})
}

func TestEventsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	const stream = ": hello\n\n:\n\nid: 7\ndata: one\n\nevent: reconnect\r\ndata:{\"after_ms\":5}\r\n\r\nid: 8\n\ndata: a\ndata\ndata:  b\nretry: 5\nunknown\n\ndata: cut off\n"
	end := func(error) {}
	s := newEvents(io.NopCloser(strings.NewReader(stream)), time.Hour, end)
	for _, want := range []string{"7||one", `|reconnect|{"after_ms":5}`, "||a\n\n b"} {
		v, err := s.next()
		if got := v.id + "|" + v.name + "|" + string(v.data); err != nil || got != want {
			t.Errorf("next = %q, %v, want %q", got, err, want)
		}
	}
	if v, err := s.next(); err != io.EOF {
		t.Errorf("next = %v, %v, want io.EOF", v, err)
	}
	long := "data: " + strings.Repeat("x", 5*readBytes)
	s = newEvents(io.NopCloser(bufio.NewReader(strings.NewReader(long+"\n\n"))), time.Hour, end)
	if v, err := s.next(); err != nil || "data: "+string(v.data) != long {
		t.Errorf("a long event: %d bytes, %v", len(v.data), err)
	}
	s = newEvents(io.NopCloser(strings.NewReader("data: x")), time.Hour, end)
	if _, err := s.next(); err != io.ErrUnexpectedEOF {
		t.Errorf("half a line: %v, want %v", err, io.ErrUnexpectedEOF)
	}
}

// workspaces makes a directory inside of another, one outside, and links in both to that.
func workspaces(t *testing.T) (own, inner, outside string) {
	t.Helper()
	base := t.TempDir()
	own, inner, outside = filepath.Join(base, "own"), filepath.Join(base, "own", "inner"), filepath.Join(base, "outside")
	for _, dir := range []string{inner, outside} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range [][2]string{{outside, filepath.Join(inner, "out")}, {outside, filepath.Join(own, "gate")}} {
		if err := os.Symlink(link[0], link[1]); err != nil {
			t.Fatal(err)
		}
	}
	return own, inner, outside
}

func TestNothingLeavesAWorkspace(t *testing.T) {
	t.Parallel()
	own, inner, outside := workspaces(t)
	w, err := openWorkspace(own, inner)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.WriteFile("a", []byte("x"), 0o600); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"out/a", "../a", "/etc/passwd", "out"} {
		if f, err := w.Open(name); err == nil {
			f.Close()
			t.Errorf("%s is opened", name)
		}
	}
	for name, want := range map[string]string{inner + "/a/../b": "b", "a/b": "a/b", inner: "."} {
		if got, err := w.Local(name); err != nil || got != want {
			t.Errorf("Local(%q) = %q, %v, want %q", name, got, err, want)
		}
	}
	if got, err := w.Local("file://" + inner + "/b"); err != nil || got != "b" {
		t.Errorf("Local of a URL = %q, %v", got, err)
	}
	for _, name := range []string{outside + "/a", "../a", " /etc/passwd", "~/a", `a\..\..\etc`, "file:///etc/passwd", "File:///%2e%2e/a", "a\x00b", `\\server\share`, `C:\a`} { // as edges have it
		if _, err := w.Local(name); agora.AsError(err).Code != agora.Forbidden {
			t.Errorf("Local(%q) = %v, want FORBIDDEN", name, err)
		}
	}
}

func TestWorkspacesThatLieOutsideAreRefused(t *testing.T) {
	t.Parallel()
	own, _, outside := workspaces(t)
	for _, c := range []struct {
		own, declared string
		code          agora.Code
	}{
		{own, outside, agora.Forbidden}, {own, own + "/../outside", agora.Forbidden}, {own, own + "/gate", agora.Forbidden},
		{"", "", agora.NotFound}, {"", "docs", agora.InvalidRequest}, {"", own + "/none", agora.NotFound},
	} {
		w, err := openWorkspace(c.own, c.declared)
		if err == nil {
			w.Close()
		}
		if agora.AsError(err) == nil || agora.AsError(err).Code != c.code {
			t.Errorf("openWorkspace(%q, %q) = %v, want %s", c.own, c.declared, err, c.code)
		}
	}
}

func TestWhatIsAskedApprovalForIsShownInWords(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		`{"action":"require_approval","what":"delete a"}`:         "delete a",
		`{"action":"require_approval","what":{"path":"a"}}`:       `{"path":"a"}`,
		`{"action":"require_approval","tool":"rm","path":"<a>"}`:  `{"path":"<a>","tool":"rm"}`,
		`{"action":"require_approval"}`:                           `{}`,
		`"delete"`:                                                `"delete"`,
		`{"action":"require_approval","what":"","reason":"none"}`: `{"reason":"none","what":""}`,
	} {
		a := Approval{Payload: []byte(payload)}
		if got := a.What(); got != want {
			t.Errorf("What of %s = %s, want %s", payload, got, want)
		}
	}
}
