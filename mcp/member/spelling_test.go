package member_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/mcp/member"
)

// serveByHand serves the server by hand over HTTP, with answers in a form.
func serveByHand(t *testing.T, form func(w http.ResponseWriter, answer string)) member.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if strings.Contains(string(b), `"server/discover"`) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		answer := answerByHand(b)
		if answer == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		form(w, answer)
	}))
	t.Cleanup(s.Close)
	return member.Config{URL: s.URL}
}

func asEvents(w http.ResponseWriter, data string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, ": hello\r\nevent: message\r\n"+data+"\r\n\r\n")
}

// TestValuesKeepTheirBytesToAndFromAServer holds, over each transport, that arguments reach a server as they were said,
// and results their caller as the server has written them.
func TestValuesKeepTheirBytesToAndFromAServer(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(t *testing.T, s *site) member.Config{
		"stdio": func(_ *testing.T, s *site) member.Config { return s.stdio("old") },
		"http": func(t *testing.T, _ *site) member.Config {
			return serveByHand(t, func(w http.ResponseWriter, answer string) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, answer)
			})
		},
		"events": func(t *testing.T, _ *site) member.Config {
			return serveByHand(t, func(w http.ResponseWriter, answer string) { asEvents(w, "data: "+answer) })
		},
		"events of several lines": func(t *testing.T, _ *site) member.Config {
			return serveByHand(t, func(w http.ResponseWriter, answer string) {
				asEvents(w, "data:"+strings.Replace(answer, `,"result":`, ",\r\ndata: \"result\"\r\ndata::", 1))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.agent = "old"
			s.start(config(t, s))
			if got, want := string(s.listed("say").Schema), `{"type":"object","title":"<","properties":{"z":{"maximum":18446744073709551615},"a":{"multipleOf":1.10}}}`; got != want {
				t.Errorf("its schema is %s, want %s", got, want)
			}
			for _, c := range []struct{ result, want string }{
				{`{"structuredContent":{"id":9007199254740993},"content":[]}`, `{"id":9007199254740993}`},
				{`{"content":[{"type":"text","text":"{}"}],"structuredContent":{"n":12345678901234567890,"price":1.10,"e":1E5}}`, `{"n":12345678901234567890,"price":1.10,"e":1E5}`},
				{`{"content":[],"structuredContent":{"z":1,"a":2,"a":3}}`, `{"z":1,"a":2,"a":3}`},
				{`{"content":[],"structuredContent":["<b>","\u003c\u00e9\/"]}`, `["<b>","\u003c\u00e9\/"]`},
				{`{"content":[{"type":"text","text":"cut \ud83d"}]}`, `"cut \ud83d"`},
				{`{"content":[{"mimeType":"image/png","data":"iVBORw==","type":"image"}]}`, `{"media":"image/png","data":"iVBORw=="}`},
				{`{"content":[{"type":"resource_link","uri":"u:1","size":9007199254740993,"name":"n"}]}`, `{"content":[{"type":"resource_link","uri":"u:1","size":9007199254740993,"name":"n"}]}`},
				{`{"content":[{"type":"text","text":"a","x":1.0},{"type":"hologram","b":1,"a":2}],"structuredContent":{"q":1.0}}`,
					`{"content":[{"type":"text","text":"a","x":1.0},{"type":"hologram","b":1,"a":2}],"structuredContent":{"q":1.0}}`},
				{`{"content":[],"structuredContent":null}`, `""`},
				{`{"content":[{"type":"text","text":"no"}],"isError":true}`, fault(agora.StreamAborted, "no")},
				{`{"content":[],"structuredContent":{"why":1.10},"isError":true}`, fault(agora.StreamAborted, `{"why":1.10}`)},
				{`{"content":[{"type":"text"}]}`, fault(agora.StreamAborted, "the tool's answer is malformed")},
				{`{"content":[{"type":"image","mimeType":"image/png","data":"?"}]}`, fault(agora.StreamAborted, "the tool's answer is malformed")},
				{`{"content":7}`, fault(agora.StreamAborted, "the tool's answer is malformed")},
			} {
				if got := s.call("say", fmt.Sprintf(`{"result":%q}`, c.result)); got != c.want {
					t.Errorf("of the result %s the answer is %s, want %s", c.result, got, c.want)
				}
			}
		})
	}
}
