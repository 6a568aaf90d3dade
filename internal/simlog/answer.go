package simlog

import "fmt"

// reply is what the servers answer, header and body.
type reply struct{ header, body string }

var (
	// absent is told whose request nobody takes.
	absent = reply{header: "NATS/1.0 503\r\n\r\n"}
	// noRoom is told who publishes while there is no storage left.
	noRoom = refusal(503, 10023, "insufficient resources")
	// refusals are told whose fence is not where the record expects it, or is being moved.
	refusals = []reply{refusal(400, 10071, "wrong last sequence: 0"), refusal(400, 10164, "wrong last sequence")}
)

func refusal(status, code int, why string) reply {
	return reply{body: fmt.Sprintf(`{"error":{"code":%d,"err_code":%d,"description":%q},"stream":"","seq":0}`, status, code, why)}
}

// frame is the answer as a client gets it that has asked for it at to.
func (r reply) frame(to, sid string) []byte {
	if r.header == "" {
		return fmt.Appendf(nil, "MSG %s %s %d\r\n%s\r\n", to, sid, len(r.body), r.body)
	}
	return fmt.Appendf(nil, "HMSG %s %s %d %d\r\n%s%s\r\n", to, sid, len(r.header), len(r.header)+len(r.body), r.header, r.body)
}
