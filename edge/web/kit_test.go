package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/origin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const goodToken = "let-me-in"

// onlyGood lets one token in; no node is behind what it lets in.
func onlyGood(_ context.Context, c edge.Credentials) (*edge.Actor, error) {
	if c.Token != goodToken {
		return nil, agora.Errorf(agora.Unauthorized, "the token is not valid")
	}
	return new(edge.Actor), nil
}

func entrance(c *admission.ConnLimiter, s *admission.Shedder) *edge.Entrance {
	return &edge.Entrance{Connections: c, Shedder: s, Authenticate: onlyGood}
}

// site is a kit behind a server, and clients of it that end with the test.
type site struct {
	t   *testing.T
	kit *Kit
	mux *http.ServeMux
	*httptest.Server
	one, two *http.Client // that speak HTTP/1.1, and HTTP/2 without TLS
}

// serve opens a site; its server has no deadline of its own but one for reading.
func serve(t *testing.T, cfg Config, n node, read time.Duration) *site {
	t.Helper()
	if n.ready == nil {
		n.ready = func() error { return nil }
	}
	if n.check == nil {
		n.check = func(*edge.Actor) error { return nil }
	}
	if n.admit == nil {
		n.admit = entrance(admission.NewConnLimiter(admission.NewLiveLimits(admission.Limits{})), admission.NewShedder(admission.ShedderConfig{Connections: 1000})).AdmitBy
	}
	if n.strangers == nil {
		n.strangers = admission.NewStrangers(admission.StrangersConfig{})
	}
	if n.open == nil {
		n.open = func(context.Context) bool { return false }
	}
	if n.heartbeat == 0 {
		n.heartbeat = time.Hour
	}
	n.proxies = new(edge.Proxies)
	cfg.Linger = await.Long
	s := &site{t: t, kit: open(cfg, n), mux: http.NewServeMux()}
	s.mux.HandleFunc("/", s.kit.NotFound)
	s.Server = httptest.NewUnstartedServer(Deadlines(s.mux, s.kit.cfg.Write))
	s.Config.Protocols, s.Config.ReadTimeout, s.Config.ConnContext = both(), read, WithConn
	s.Start()
	s.one, s.two = &http.Client{Transport: &http.Transport{}}, &http.Client{Transport: &http.Transport{Protocols: new(http.Protocols)}}
	s.two.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(func() {
		s.kit.Close()
		s.one.CloseIdleConnections()
		s.two.CloseIdleConnections()
		s.CloseClientConnections()
		s.Close()
		s.kit.Wait()
	})
	return s
}

func both() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// each runs a test over both versions of HTTP.
func (s *site) each(do func(t *testing.T, c *http.Client)) {
	s.t.Run("HTTP/1.1", func(t *testing.T) { do(t, s.one) })
	s.t.Run("HTTP/2", func(t *testing.T) { do(t, s.two) })
}

// ask sends a request with the good token, and headers as name and value.
func (s *site) ask(t *testing.T, c *http.Client, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+goodToken)
	for k := 0; k < len(headers); k += 2 {
		if headers[k] == "Host" {
			r.Host = headers[k+1]
		} else if r.Header.Set(headers[k], headers[k+1]); headers[k+1] == "" {
			r.Header.Del(headers[k])
		}
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// refusal is the body of an error.
func refusal(code agora.Code, message string) string {
	return fmt.Sprintf(`{"error":{"code":%q,"message":%q}}`+"\n", code, message)
}

func TestEveryErrorHasOneForm(t *testing.T) {
	var down atomic.Bool
	s := serve(t, Config{Body: 10}, node{ready: func() error {
		if down.Load() {
			return agora.Errorf(agora.Unavailable, "the edge is draining")
		}
		return nil
	}}, 0)
	s.kit.Handle(s.mux, "/it", Methods{
		"GET":  func(x *Exchange) error { return x.Answer(200, map[string]int{"a": 1}) },
		"POST": func(x *Exchange) error { _, err := x.JSON(); return err },
		"PUT":  func(x *Exchange) error { return errors.New("an internal matter") },
	})
	s.each(func(t *testing.T, c *http.Client) {
		for _, at := range []struct {
			about, method, path, body string
			headers                   []string
			status                    int
			want                      string
			has                       string // a header of the answer, and its value
		}{
			{"good", "GET", "/it", "", nil, 200, `{"a":1}` + "\n", "Content-Type: application/json"},
			{"its header alone", "HEAD", "/it", "", nil, 200, "", "Content-Type: application/json"},
			{"no path", "GET", "/nowhere", "", nil, 404, refusal("INVALID_REQUEST", "there is nothing at this path"), "X-Content-Type-Options: nosniff"},
			{"no method", "DELETE", "/it", "", nil, 405, refusal("INVALID_REQUEST", "this path takes GET, HEAD, OPTIONS, POST, PUT"), "Allow: GET, HEAD, OPTIONS, POST, PUT"},
			{"no token", "GET", "/it", "", []string{"Authorization", ""}, 401, refusal("UNAUTHORIZED", "the token is not valid"), "Www-Authenticate: Bearer"},
			{"a token in the URL", "GET", "/it?token=" + goodToken, "", []string{"Authorization", ""}, 401, refusal("UNAUTHORIZED", "the token is not valid"), "Cache-Control: no-store"},
			{"another type", "POST", "/it", "1", []string{"Content-Type", "text/plain"}, 415, refusal("INVALID_REQUEST", "this path takes application/json"), ""},
			{"another charset", "POST", "/it", "1", []string{"Content-Type", "application/json; charset=latin1"}, 415, refusal("INVALID_REQUEST", "this path takes application/json"), ""},
			{"compressed", "POST", "/it", "1", []string{"Content-Encoding", "gzip"}, 415, refusal("INVALID_REQUEST", "send the body without Content-Encoding"), ""},
			{"what curl says", "POST", "/it", "[1]", []string{"Content-Type", "application/x-www-form-urlencoded"}, 204, "", ""},
			{"as large as may be", "POST", "/it", `"12345678"`, nil, 204, "", ""},
			{"larger", "POST", "/it", `"123456789"`, nil, 413, refusal("MESSAGE_TOO_LARGE", "the body has more than 10 bytes"), ""},
			{"much larger", "POST", "/it", `"` + strings.Repeat("x", 1<<20), nil, 413, refusal("MESSAGE_TOO_LARGE", "the body has more than 10 bytes"), ""},
			{"no JSON", "POST", "/it", `{`, nil, 400, refusal("INVALID_REQUEST", "the body is no JSON at byte 1"), ""},
			{"empty", "POST", "/it", ``, nil, 400, refusal("INVALID_REQUEST", "the body is no JSON at byte 0"), ""},
			{"an error that is none of an agent's", "PUT", "/it", "", nil, 503, refusal("UNAVAILABLE", "the cluster can't do this now"), "Retry-After: 1"},
		} {
			r := s.ask(t, c, at.method, at.path, at.body, at.headers...)
			if got := text(t, r); r.StatusCode != at.status || got != at.want {
				t.Errorf("%s: %d %s, want %d %s", at.about, r.StatusCode, got, at.status, at.want)
			}
			if name, value, _ := strings.Cut(at.has, ": "); at.has != "" && r.Header.Get(name) != value {
				t.Errorf("%s: %s is %q, want %q", at.about, name, r.Header.Get(name), value)
			}
		}
		down.Store(true)
		r := s.ask(t, c, "GET", "/it", "")
		if got := text(t, r); r.StatusCode != 503 || r.Header.Get("Retry-After") != "1" || got != refusal("UNAVAILABLE", "the edge is draining") {
			t.Errorf("where the edge drains: %d %s", r.StatusCode, got)
		}
		down.Store(false)
	})
	if n := s.kit.stats.Errors[agora.MessageTooLarge].Load(); n != 4 {
		t.Errorf("%d bodies counted as too large, want 4", n)
	}
}

func TestPagesMayAskWhereTheirOriginIsAllowed(t *testing.T) {
	s := serve(t, Config{Pages: origin.Policy{Listed: []string{"https://app.example.com"}}}, node{}, 0)
	dev := serve(t, Config{Pages: origin.Policy{Loopback: true}}, node{}, 0)
	for _, s := range []*site{s, dev} {
		s.kit.Handle(s.mux, "/it", Methods{"GET": func(x *Exchange) error { return x.Answer(200, 1) }})
	}
	for _, at := range []struct {
		about        string
		site         *site
		origin, host string
		status       int
	}{
		{"a program", s, "", "a.example.com", 200}, {"the same host", s, "https://a.example.com", "a.example.com", 200},
		{"a listed one", s, "https://app.example.com", "a.example.com", 200}, {"another", s, "https://evil.example", "a.example.com", 403},
		{"nobody's", s, "null", "a.example.com", 403},
		{"a program, in development", dev, "", "127.0.0.1:8080", 200}, {"a container's name", dev, "", "agora:8080", 200},
		{"a container's host", dev, "", "host.docker.internal:8080", 200},
		{"a name that somebody has let point here", dev, "", "evil.example:8080", 403},
		{"a page of that name", dev, "http://evil.example:8080", "evil.example:8080", 403},
		{"a page of this machine", dev, "http://localhost:3000", "127.0.0.1:8080", 200},
	} {
		r := at.site.ask(t, at.site.one, "GET", "/it", "", "Origin", at.origin, "Host", at.host)
		if got := r.Header.Get("Access-Control-Allow-Origin"); r.StatusCode != at.status || at.status == 200 && got != at.origin || at.status != 200 && got != "" {
			t.Errorf("%s: %d, may read it: %q", at.about, r.StatusCode, got)
		}
		pre := at.site.ask(t, at.site.one, "OPTIONS", "/it", "", "Authorization", "", "Origin", at.origin, "Host", at.host, "Access-Control-Request-Method", "GET")
		want := at.status
		if want == 200 {
			want = 204
		}
		if pre.StatusCode != want || want == 204 && at.origin != "" && !strings.Contains(pre.Header.Get("Access-Control-Allow-Headers"), "Authorization") {
			t.Errorf("%s: asked before, it is answered %d %v", at.about, pre.StatusCode, pre.Header)
		}
		if vary := r.Header.Get("Vary"); vary != "Origin" {
			t.Errorf("%s: Vary is %q", at.about, vary)
		}
	}
}

func TestARequestCountsAsAConnectionForAsLongAsItsAnswerLasts(t *testing.T) {
	conns, shedder := admission.NewConnLimiter(admission.NewLiveLimits(admission.Limits{PerIP: 2})), admission.NewShedder(admission.ShedderConfig{Connections: 3})
	s := serve(t, Config{}, node{admit: entrance(conns, shedder).AdmitBy}, 0)
	s.kit.Handle(s.mux, "/events", Methods{"GET": func(x *Exchange) error {
		if _, err := x.Events(); err != nil {
			return err
		}
		<-x.Context().Done()
		return x.Context().Err()
	}})
	s.each(func(t *testing.T, c *http.Client) { // of HTTP/2 all over one connection
		one, two := s.ask(t, c, "GET", "/events", ""), s.ask(t, c, "GET", "/events", "")
		if one.StatusCode != 200 || two.StatusCode != 200 {
			t.Fatalf("answered %d and %d, want 200", one.StatusCode, two.StatusCode)
		}
		if r := s.ask(t, c, "GET", "/events", ""); r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
			t.Errorf("the third from one address: %d, want 429", r.StatusCode)
		}
		one.Body.Close()
		await.True(t, "there is room again", func() bool {
			r := s.ask(t, c, "GET", "/events", "")
			defer r.Body.Close()
			return r.StatusCode == 200
		})
		two.Body.Close()
		await.True(t, "all have gone", func() bool { return s.kit.stats.Open.Load() == 0 && s.kit.stats.Lasting.Load() == 0 })
	})
	var slots []*admission.Slot
	for range 3 {
		slot, err := shedder.Acquire()
		if err != nil {
			t.Fatalf("a slot was not given back: %v", err)
		}
		slots = append(slots, slot)
	}
	if r := s.ask(t, s.one, "GET", "/events", ""); r.StatusCode != 503 {
		t.Errorf("where the edge is full: %d, want 503", r.StatusCode)
	}
	for _, slot := range slots {
		slot.Release()
	}
}

// A server whose requests have to be read soon answers for long nevertheless, to who reads.
func TestAnAnswerMayLastForLongerThanAnyDeadline(t *testing.T) {
	for limit := 50 * time.Millisecond; !outlasts(t, limit); limit *= 4 {
		if t.Logf("an answer ended early with deadlines of %v", limit); limit > await.Long/10 {
			t.Fatal("an answer ends with a deadline, however long that is")
		}
	}
}

// late answers once it is told, in one piece or as an event.
func late(told <-chan struct{}) Handler {
	return func(x *Exchange) (err error) {
		var e *Events
		switch {
		case x.Request.Method == "POST":
			_, err = x.JSON()
		case x.Request.URL.Path == "/events":
			e, err = x.Events()
		}
		if err != nil {
			return err
		}
		select {
		case <-told:
		case <-x.Context().Done():
			return x.Context().Err()
		}
		if e != nil {
			return e.Send(Event{Data: []byte("late")})
		}
		return x.Answer(200, "late")
	}
}

// outlasts reports whether answers of every kind come whole that take five times as long as the deadlines.
func outlasts(t *testing.T, limit time.Duration) bool {
	s := serve(t, Config{Write: limit, BodyTime: limit}, node{}, limit)
	told := make(chan struct{})
	s.kit.Handle(s.mux, "/it", Methods{"GET": late(told), "POST": late(told)})
	s.kit.Handle(s.mux, "/events", Methods{"GET": late(told)})
	type asked struct {
		c                  *http.Client
		method, path, want string
	}
	var all []asked
	for _, c := range []*http.Client{s.one, s.two} {
		all = append(all, asked{c, "GET", "/it", "\"late\"\n"}, asked{c, "POST", "/it", "\"late\"\n"}, asked{c, "GET", "/events", "data: late\n\n"})
	}
	answers := make(chan bool, len(all))
	for _, a := range all {
		go func() {
			got, err := s.hear(a.c, a.method, a.path)
			answers <- err == nil && got == a.want
		}()
	}
	time.AfterFunc(5*limit, func() { close(told) })
	whole := true
	for range all {
		whole = await.Recv(t, "an answer", answers) && whole
	}
	return whole
}

// hear asks, and returns the whole answer. Any goroutine may call it.
func (s *site) hear(c *http.Client, method, path string) (string, error) {
	var body io.Reader
	if method == "POST" {
		body = strings.NewReader("{}")
	}
	r, err := http.NewRequest(method, s.URL+path, body)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+goodToken)
	resp, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestAPeerThatReadsNothingIsCutOff(t *testing.T) {
	s := serve(t, Config{Write: 50 * time.Millisecond}, node{}, 0)
	ended := make(chan error, 1)
	large := []byte(strings.Repeat("x", 32<<10))
	s.kit.Handle(s.mux, "/events", Methods{"GET": func(x *Exchange) error {
		e, err := x.Events()
		for err == nil {
			err = e.Send(Event{Data: large})
		}
		ended <- err
		return err
	}})
	s.each(func(t *testing.T, c *http.Client) {
		before := s.kit.stats.Stalled.Load()
		r := s.ask(t, c, "GET", "/events", "")
		if err := await.Recv(t, "the end of the answer", ended); !stalled(err) {
			t.Errorf("ended with %v, want a deadline", err)
		}
		r.Body.Close()
		await.True(t, "it is counted", func() bool { return s.kit.stats.Stalled.Load() == before+1 && s.kit.stats.Open.Load() == 0 })
	})
}

// Requests whose answers nobody reads follow each other on one connection: what the server has of them may not wait for
// ever.
func TestAPeerThatPipelinesAndReadsNothingIsCutOff(t *testing.T) {
	s := serve(t, Config{Write: 50 * time.Millisecond}, node{}, 0)
	var requests atomic.Int64
	s.kit.Handle(s.mux, "/it", Methods{"GET": func(x *Exchange) error {
		requests.Add(1)
		return x.Answer(200, strings.Repeat("x", 3000))
	}})
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(await.Long))
	for err == nil { // until the server has let go of it
		_, err = io.WriteString(c, "GET /it HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+goodToken+"\r\n\r\n")
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		t.Errorf("after %d requests it is not cut off", requests.Load())
	}
	await.True(t, "nothing is left of it", func() bool { return s.kit.stats.Open.Load() == 0 })
}

// lines returns those of an answer of events, as they come.
func lines(r *http.Response) <-chan string {
	said := make(chan string, 100)
	go func() {
		defer close(said)
		for s := bufio.NewScanner(r.Body); s.Scan(); {
			said <- s.Text()
		}
	}()
	return said
}

func TestARequestThatAProxyMayUnderstandInAnotherWayIsRefusedOrTheLast(t *testing.T) {
	s := serve(t, Config{}, node{}, 0)
	s.kit.Handle(s.mux, "/it", Methods{"POST": func(x *Exchange) error { _, err := x.JSON(); return err }})
	head := "POST /it HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + goodToken + "\r\n"
	behind := "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, c := range []struct {
		about, text string
		status      []int // of the answers on the connection
	}{
		{"a plain one, and one behind it", head + "Content-Length: 2\r\n\r\n{}" + behind, []int{204, 404}},
		{"a type twice", head + "Content-Type: text/plain\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", []int{400}},
		{"a key twice", head + "Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 2\r\n\r\n{}", []int{400}},
		{"an origin twice", head + "Origin: http://a\r\nOrigin: http://evil.example\r\nContent-Length: 2\r\n\r\n{}", []int{400}},
		{"a length and chunks", head + "Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + behind, []int{204}},
	} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(await.Long))
		if _, err := io.WriteString(conn, c.text); err != nil {
			t.Fatal(err)
		}
		conn.(*net.TCPConn).CloseWrite()
		var got []int
		for r := bufio.NewReader(conn); ; {
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				break
			}
			got = append(got, resp.StatusCode)
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		conn.Close()
		if !slices.Equal(got, c.status) {
			t.Errorf("%s: answered %v, want %v", c.about, got, c.status)
		}
	}
}
