package iat_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// answer is what a request was answered with.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// call is a request that is to be made. Its zero value is a GET at edge 0 by HTTP/1.1.
type call struct {
	client  *http.Client
	edge    int
	method  string // POST where there is a body, else GET
	path    string
	token   string
	headers map[string]string
	body    string
}

func (s *site) request(ctx context.Context, c call) (*http.Response, error) {
	switch {
	case c.method != "":
	case c.body != "":
		c.method = http.MethodPost
	default:
		c.method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(ctx, c.method, s.HTTP(c.edge)+c.path, strings.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
	if c.client == nil {
		c.client = s.one
	}
	return c.client.Do(r)
}

// asks makes a request and returns the answer.
func (s *site) asks(ctx context.Context, c call) (a answer) {
	resp, err := s.request(ctx, c)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b), err}
}

// ask makes a request and returns the answer, which must come.
func (s *site) ask(t testing.TB, c call) answer {
	t.Helper()
	a := s.asks(await.Context(t), c)
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a
}

// start makes a request whose answer comes later.
func (s *site) start(t testing.TB, c call) <-chan answer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // the one who waits for the answer waits for no longer than it may
	got := make(chan answer, 1)
	var work sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		work.Wait()
	})
	work.Go(func() { got <- s.asks(ctx, c) })
	return got
}

// post is a call that POSTs an envelope.
func post(edge int, envelope string) call { return call{edge: edge, path: "/a2a", body: envelope} }

// events is c for the one who accepts events.
func (c call) events() call {
	c.headers = map[string]string{"Accept": "text/event-stream"}
	return c
}

// by is c with a token.
func (c call) by(token string) call {
	c.token = token
	return c
}

// over is c by a client.
func (c call) over(client *http.Client) call {
	c.client = client
	return c
}

// is fails the test where the answer has another status, or its body does not match a pattern of agoratest.
func (a answer) is(t testing.TB, status int, pattern string) {
	t.Helper()
	if a.err != nil {
		t.Fatal(a.err)
	}
	if a.status != status {
		t.Errorf("status %d, want %d: %.500s", a.status, status, a.body)
	}
	if pattern == "" && a.body == "" {
		return
	}
	if why := agoratest.Frame(a.body).Match(pattern); why != "" {
		t.Errorf("answered %.1000s\nwant %.1000s\n%s", a.body, pattern, why)
	}
}

// wrong is what an error envelope is to say.
type wrong struct {
	Code   agora.Code `json:"code"`
	Path   string     `json:"path"`
	Parent string     `json:"parent"`
	To     string     `json:"to"`
}

// refused fails the test where the answer is not the envelope of an error, with the status of its code.
func (a answer) refused(t testing.TB, w wrong) {
	t.Helper()
	if a.err != nil {
		t.Fatal(a.err)
	}
	if want := w.Code.Status().HTTP; a.status != want {
		t.Errorf("status %d, want %d", a.status, want)
	}
	faulty(t, a.body, w)
}

// faulty fails the test where text is not the envelope of an error.
func faulty(t testing.TB, text string, w wrong) {
	t.Helper()
	optional := func(name, value string) string {
		if value == "" {
			return ""
		}
		return fmt.Sprintf("%q:%s,", name, agoratest.Quote(value))
	}
	more := ""
	if w.Path != "" {
		more = `,"path":` + agoratest.Quote(w.Path)
	}
	if strings.Contains(text, `"retry_after_ms":`) {
		more += `,"retry_after_ms":"<any>"`
	}
	pattern := fmt.Sprintf(`{"header":{"msg_id":"<any>",%s"type":"response","from":"agora",%s"timestamp":"<any>"},"metadata":"<none>","payload":{"error":{"code":%q,"message":"<any>"%s}}}`,
		optional("parent_id", w.Parent), optional("to", w.To), w.Code, more)
	if why := agoratest.Frame(text).Match(pattern); why != "" {
		t.Errorf("the error is %.1000s\nwant %s\n%s", text, pattern, why)
	}
}

// event is one server-sent event, or a comment where it has nothing.
type event struct{ id, name, data string }

// downlink is a stream of events that a test reads.
type downlink struct {
	t      testing.TB
	resp   *http.Response
	cancel context.CancelFunc
	events chan event // closed at the end
	reader sync.WaitGroup
}

// listen opens a stream of events, which ends with the test.
func (s *site) listen(t testing.TB, c call) *downlink {
	t.Helper()
	d, resp := s.tryListen(t, c)
	if resp != nil {
		t.Fatalf("no events: %d %s", resp.status, resp.body)
	}
	return d
}

// tryListen is listen for who may be refused.
func (s *site) tryListen(t testing.TB, c call) (*downlink, *answer) {
	t.Helper()
	ctx, cancel := context.WithCancel(await.Context(t))
	resp, err := s.request(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		defer cancel()
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return nil, &answer{resp.StatusCode, resp.Header, string(b), err}
	}
	d := &downlink{t: t, resp: resp, cancel: cancel, events: make(chan event, 1<<16)}
	d.reader.Go(d.read)
	t.Cleanup(d.close)
	return d, nil
}

// downlink opens the downlink of an agent at edge k, as its query says besides.
func (s *site) downlink(t testing.TB, k int, agent string, more ...string) *downlink {
	t.Helper()
	return s.listen(t, call{edge: k, path: downlinkOf(agent, more...)})
}

// downlinkOf returns the path of an agent's downlink, with more names and values in its query.
func downlinkOf(agent string, more ...string) string {
	return "/a2a/events?" + queryOf(agent, more...)
}

func queryOf(agent string, more ...string) string {
	q := url.Values{"agent": {agent}}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return q.Encode()
}

func (d *downlink) close() {
	d.cancel()
	d.reader.Wait()
}

func (d *downlink) read() {
	defer close(d.events)
	defer d.resp.Body.Close()
	readEvents(d.resp.Body, func(e event) { d.events <- e })
}

// parsed returns the events of a whole answer, but for comments.
func parsed(text string) (all []event) {
	readEvents(strings.NewReader(text), func(e event) {
		if e != (event{}) {
			all = append(all, e)
		}
	})
	return all
}

// readEvents has each event taken until there are no more.
func readEvents(r io.Reader, take func(event)) {
	var e event
	var data []string
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			data = append(data, value)
		case "":
			e.data = strings.Join(data, "\n")
			take(e)
			e, data = event{}, nil
		}
	}
}

// raw returns the next event, comments included; false at the end.
func (d *downlink) raw() (event, bool) {
	d.t.Helper()
	end := time.NewTimer(await.Long)
	defer end.Stop()
	select {
	case e, ok := <-d.events:
		return e, ok
	case <-end.C:
		d.t.Fatal("no event came")
	}
	return event{}, false
}

// next returns the next event that is no comment; false at the end.
func (d *downlink) next() (event, bool) {
	d.t.Helper()
	for {
		if e, ok := d.raw(); !ok || e != (event{}) {
			return e, ok
		}
	}
}

// expect takes an event for each pattern of its data, and returns the last one.
func (d *downlink) expect(patterns ...string) (e event) {
	d.t.Helper()
	for _, p := range patterns {
		var ok bool
		if e, ok = d.next(); !ok {
			d.t.Fatalf("the events have ended, want %.500s", p)
		}
		if why := agoratest.Frame(e.data).Match(p); why != "" {
			d.t.Fatalf("got  %.700s\nwant %.700s\n%s", e.data, p, why)
		}
	}
	return e
}

// ends wants the end, and nothing before it.
func (d *downlink) ends() {
	d.t.Helper()
	if e, ok := d.next(); ok {
		d.t.Fatalf("got %+v, want the end", e)
	}
}

// endsWith wants an error as the last event.
func (d *downlink) endsWith(code agora.Code) {
	d.t.Helper()
	e, ok := d.next()
	if !ok {
		d.t.Fatalf("the events have ended without a word, want %s", code)
	}
	faulty(d.t, e.data, wrong{Code: code, To: fieldOf(e.data, "header", "to")})
	d.ends()
}

// socket connects an agent at edge k by WebSocket.
func (s *site) socket(t testing.TB, k int, agent string, more ...string) *agoratest.Client {
	t.Helper()
	return agoratest.Connect(t, agoratest.Direct{}, s.socketURL(k), queryOf(agent, more...), nil)
}

func (s *site) socketURL(k int) string { return strings.TrimSuffix(s.URL(k), "/ws") + "/a2a/ws" }

// ws connects an agent of the relay's dialect at edge k.
func (s *site) ws(t testing.TB, k int, agent string) *agoratest.Client {
	t.Helper()
	c := agoratest.Connect(t, agoratest.Direct{}, s.URL(k), "agent_id="+url.QueryEscape(agent), nil)
	c.Expect(`{"type":"agent.registered"}`)
	return c
}

// said is an envelope in parts.
type said struct {
	id, kind, parent, from, to string
	metadata                   string // an object's members
	payload                    string // JSON; {} if empty
}

// String returns the envelope.
func (e said) String() string {
	parent := ""
	if e.parent != "" {
		parent = `"parent_id":` + agoratest.Quote(e.parent) + `,`
	}
	if e.payload == "" {
		e.payload = "{}"
	}
	return fmt.Sprintf(`{"header":{"msg_id":%s,%s"type":%q,"from":%s,"to":%s},"metadata":{%s},"payload":%s}`,
		agoratest.Quote(e.id), parent, e.kind, agoratest.Quote(e.from), agoratest.Quote(e.to), e.metadata, e.payload)
}

// fieldRaw returns a member of an envelope, as it was written.
func fieldRaw(text, name string) string { return agoratest.Frame(text).Raw(name) }

// fieldOf returns a string inside of an envelope, by its path.
func fieldOf(text string, path ...string) string {
	raw := json.RawMessage(text)
	for _, name := range path {
		var o map[string]json.RawMessage
		if json.Unmarshal(raw, &o) != nil {
			return ""
		}
		raw = o[name]
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}
