package rest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/wire/listing"
)

// FuzzBodies posts bodies to the paths that take one: each is answered, in the form of an answer or of an error.
func FuzzBodies(f *testing.F) {
	c := agoratest.Start(f, agoratest.Options{Edges: 1})
	kit, mux := web.New(c.Node(0), web.Config{}), http.NewServeMux()
	f.Cleanup(func() {
		kit.Close()
		kit.Wait()
	})
	Mount(kit, mux, carrier.New(nil))
	for _, body := range []string{
		`{"method":"GET","path":"/"}`, `{"name":"n","skills":["a",{"name":"b","schema":{}}],"metadata":{}}`, `{"skills":[7]}`, `{"tools":[{}],"metadata":0}`,
		`{"skill":"translate"}`, `{"goal":"translate a text","limit":3}`, `{"skill":"a","goal":"b"}`, `{"limit":-1}`, `{"skill":null}`, `{}`, ` {} `,
		`{"text":"hello","request_id":"r"}`, `{"request_id":7}`, `{"request_id":""}`, `{"request\u005fid":"r"}`, `{ "a" : {"request_id":"x"} , "b":[1e999] }`,
		`[1,2]`, `"text"`, `null`, `1`, ``, `{`, `{"a":1,"a":2}`, `{"a":"` + "\xff" + `"}`, strings.Repeat("[", 70), `{"a":1}{`, "\ufeff{}",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, to := range []struct {
			method, path string
			none         agora.Code // of a body that is good
		}{
			{http.MethodPost, "/agents/find", ""}, {http.MethodPost, "/agents/nobody/ask", agora.AgentNotFound},
			{http.MethodPost, "/agents/nobody/handoff", agora.AgentNotFound}, {http.MethodPost, "/agents/nobody/tools/x", agora.AgentNotFound},
			{http.MethodPut, "/agents/someone", ""},
		} {
			path, none := to.path, to.none
			r := httptest.NewRequestWithContext(t.Context(), to.method, "http://127.0.0.1"+path, strings.NewReader(string(body)))
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			var found listing.Agents
			switch w.Code {
			case http.StatusOK:
				if none != "" || json.Unmarshal(w.Body.Bytes(), &found) != nil || found.Agents == nil && to.method == http.MethodPost {
					t.Errorf("%s answers %s", path, w.Body)
				}
			case http.StatusNotFound:
				if code := refused(t, w.Body.String()); none == "" || code != none {
					t.Errorf("%s answers %s", path, w.Body)
				}
			case http.StatusBadRequest:
				if code := refused(t, w.Body.String()); code != agora.InvalidRequest {
					t.Errorf("%s answers %s", path, w.Body)
				}
			default:
				t.Errorf("%s answers %d %s", path, w.Code, w.Body)
			}
		}
	})
}
