package ws

import (
	"log/slog"
	"net/http"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora"
)

// plain tells whether somebody asks without wanting a WebSocket: a browser, or a client whose upgrade a proxy has taken away.
func plain(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !websocket.IsWebSocketUpgrade(r)
}

// explain says what this is. Who asks needs no credentials for it, and learns nothing else.
func (d *Door) explain(w http.ResponseWriter, r *http.Request) {
	d.stats.Refused.Add(1)
	d.refusals.Note(agora.Errorf(agora.InvalidRequest, "no upgrade"), func() []slog.Attr {
		return []slog.Attr{slog.String("from", d.client(r).String()), slog.Int("status", http.StatusUpgradeRequired)}
	})
	if r.ProtoMajor > 1 {
		http.Error(w, string(agora.InvalidRequest)+": "+whatIsWrong, http.StatusUpgradeRequired)
		return
	}
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	http.Error(w, string(agora.InvalidRequest)+": "+whatThisIs, http.StatusUpgradeRequired)
}

// whatIsWrong is told to who asks over HTTP/2, which knows no upgrade.
const whatIsWrong = "this is an edge of Agora, whose WebSockets are opened over HTTP/1.1 alone; this request came over HTTP/2, " +
	"from a client, or a proxy on its way, that is to speak HTTP/1.1 to this path. " +
	"See https://github.com/agora-relay/agora/blob/main/PROTOCOL.md"

const whatThisIs = "this is an edge of Agora, a relay for AI agents, which connect here by WebSocket; " +
	"this request asks for no upgrade to one, or a proxy on its way has taken that out. " +
	"See https://github.com/agora-relay/agora/blob/main/PROTOCOL.md"
