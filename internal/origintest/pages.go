// Package origintest is for tests of listeners: it has the requests that web pages make browsers send, and finds the
// routes of a mux, so that each is tried with each.
package origintest

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// Browser is what browsers call themselves.
const Browser = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"

// Page is a page, or a program, by the headers that a request of it has.
type Page struct {
	About   string
	Host    string   // that is asked for, with PORT for the listener's; the listener's address if empty
	Headers []string // names and values in turn
	Twice   bool     // it may be refused with 400
}

// Foreign are requests of pages that no listener of a machine for development answers, whatever they ask for: 403, or
// 400 where Twice.
var Foreign = []Page{
	{About: "a script of another site", Headers: []string{"Origin", "http://evil.example"}},
	{About: "a script of another site, as browsers mark it", Headers: []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "User-Agent", Browser}},
	{About: "a script of another site that marks itself", Headers: []string{"Origin", "http://evil.example", "Sec-Fetch-Site", "same-origin"}},
	{About: "a page of nobody: a sandbox, a file, a form without a reference", Headers: []string{"Origin", "null"}},
	{About: "a page whose name is made to point here", Host: "evil.example:PORT", Headers: []string{"Origin", "http://evil.example:PORT"}},
	{About: "the same, of a name of the network", Host: "mac.local:PORT", Headers: []string{"Origin", "http://mac.local:PORT"}},
	{About: "a page that asks its own host, whose name is made to point here", Host: "evil.example:PORT", Headers: []string{"User-Agent", Browser}},
	{About: "the same, as browsers mark it", Host: "evil.example:PORT", Headers: []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}},
	{About: "the same, of a name of the network", Host: "mac.local:PORT"},
	{About: "the same with a dot", Host: "evil.example.:PORT"},
	{About: "the same, of a name that begins as this machine does", Host: "localhost.evil.example:PORT"},
	{About: "an image of another site", Headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image", "Referer", "http://evil.example/", "User-Agent", Browser}},
	{About: "an image of a sibling", Headers: []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}},
	{About: "a script that is fetched from another site", Headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script", "Accept", "text/event-stream"}},
	{About: "a link that is followed", Headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-User", "?1"}},
	{About: "a link that is fetched ahead", Headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Purpose", "prefetch"}},
	{About: "a mark that no browser writes", Headers: []string{"Sec-Fetch-Site", "Same-Origin"}},
	{About: "two origins", Headers: []string{"Origin", "http://localhost:3000", "Origin", "http://evil.example"}, Twice: true},
	{About: "two marks", Headers: []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Site", "cross-site"}, Twice: true},
}

// Unsaid are requests that a browser may have sent for a page of anybody: they get nothing done by GET or HEAD, as
// browsers of old and those that ask over plain HTTP say no more.
var Unsaid = []Page{
	{About: "an image over plain HTTP", Headers: []string{"User-Agent", Browser, "Referer", "http://evil.example/", "Accept", "image/*"}},
	{About: "an image of what calls itself something else", Headers: []string{"User-Agent", "Reader/1.0", "Referer", "http://evil.example/"}},
	{About: "an image of a page that is not named", Headers: []string{"User-Agent", Browser}},
	{About: "a page that names this machine in its path", Headers: []string{"User-Agent", Browser, "Referer", "http://evil.example/?http://localhost/"}},
	{About: "a link from a letter", Headers: []string{"User-Agent", Browser, "Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
}

// Welcome are requests of pages that may ask on a machine for development, at every route: scripts of this machine.
var Welcome = []Page{
	{About: "a script of this machine", Headers: []string{"Origin", "http://localhost:3000", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "User-Agent", Browser}},
	{About: "a script of the same host", Headers: []string{"Origin", "http://127.0.0.1:PORT", "User-Agent", Browser}},
}

// Programs are requests that no other site's page can make browsers send.
var Programs = []Page{
	{About: "a program"},
	{About: "a program in Node", Headers: []string{"User-Agent", "node", "Sec-Fetch-Mode", "cors"}},
	{About: "events that a script of the same host listens to", Headers: []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "User-Agent", Browser}},
	{About: "the same over plain HTTP", Headers: []string{"User-Agent", Browser, "Referer", "http://127.0.0.1:PORT/page"}},
}

// Request is one request, but for the page that it is of.
type Request struct {
	Method, Target, Body string
	Headers              []string // names and values in turn, as of a handshake
}

// Handshake are the headers of a handshake of WebSocket.
var Handshake = []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}

// Ask sends a request of a page to a listener, and returns the answer's status and the beginning of its body. It waits
// for no more than the answer's header where that is a good one, and fails where there is none.
func (p *Page) Ask(t testing.TB, c *http.Client, at string, q Request) (status int, text string) {
	t.Helper()
	scheme, address, _ := strings.Cut(at, "://")
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), q.Method, scheme+"://"+address+q.Target, strings.NewReader(q.Body))
	if err != nil {
		t.Fatal(err)
	}
	if p.Host != "" {
		r.Host = strings.ReplaceAll(p.Host, "PORT", port)
	}
	all := append(append([]string(nil), q.Headers...), p.Headers...)
	for k := 0; k < len(all); k += 2 {
		r.Header.Add(all[k], strings.ReplaceAll(all[k+1], "PORT", port))
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Errorf("%s asks %s %s: %v", p.About, q.Method, q.Target, err)
		return 0, ""
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 400 {
		b, _ := io.ReadAll(io.LimitReader(answer.Body, 1000)) // it is for messages alone
		text = string(b)
	}
	return answer.StatusCode, text
}

// Refused reports an error where a status is not that of a page that may not ask.
func (p *Page) Refused(t testing.TB, status int, what, text string) {
	t.Helper()
	if status != http.StatusForbidden && !(p.Twice && status == http.StatusBadRequest) {
		t.Errorf("%s: %s is answered %d %s, want 403", what, p.About, status, text)
	}
}
