package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestEventsAreForThoseWhoPreferThem(t *testing.T) {
	for _, c := range []struct {
		accept []string
		want   bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"*/*"}, false},
		{[]string{"text/event-stream"}, true},
		{[]string{"Text/Event-Stream"}, true},
		{[]string{"text/event-stream; charset=UTF-8"}, true},
		{[]string{"text/*"}, true},
		{[]string{"text/*;q=0.9, text/event-stream;q=0"}, false},
		{[]string{"application/json, text/event-stream"}, true},
		{[]string{"application/json, text/event-stream;q=0"}, false},
		{[]string{"application/json, text/event-stream;q=0.5"}, false},
		{[]string{"application/json;q=0.5", "text/event-stream"}, true},
		{[]string{"text/event-stream;q=0.5, */*;q=0.1"}, true},
		{[]string{"text/event-stream;q=0.1, */*;q=0.5"}, false},
		{[]string{"*/*, application/json;q=0"}, true},
		{[]string{"text/event-streamer, application/json"}, false},
		{[]string{`application/json;x="text/event-stream"`}, false},
		{[]string{`application/json;x="a\", text/event-stream, b"`}, false},
		{[]string{`application/json;x="a", text/event-stream`}, true},
		{[]string{"text/event-stream;q=2, text"}, false},
		{[]string{",, text/event-stream ,"}, true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["Accept"] = c.accept
		if got := (&Exchange{Request: r}).WantsEvents(); got != c.want {
			t.Errorf("Accept %q: %v, want %v", c.accept, got, c.want)
		}
	}
}
