//go:build interop

package aip

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// socket has an agent of a WebSocket register with an edge.
func socket(t *testing.T, url, card string) *agoratest.Client {
	t.Helper()
	c := agoratest.Connect(t, agoratest.Direct{}, "ws"+strings.TrimPrefix(url, "http")+"/ws", "", nil)
	c.Send(`{"type":"agent.register","agent":` + card + `}`)
	c.Expect(`{"type":"agent.registered"}`)
	return c
}

func TestAnAgentOfAWebSocketCallsToolsAndHoldsSessionsWithNodes(t *testing.T) {
	c := start(t)
	peers := map[string]string{"go": servesGo(t, c.GRPC)}
	for _, p := range []program{nodeProgram(t), pythonProgram(t)} {
		peers[p.language] = p.serves(t, c.GRPC)
	}
	for language, peer := range peers {
		t.Run(language, func(t *testing.T) {
			al := socket(t, c.URLs[2], fmt.Sprintf(`{"id":%q}`, "al "+language))
			callsTools(t, al, agoratest.Quote("toolbox-"+peer))
			streams(t, al, agoratest.Quote("agent-"+peer))
			breaksOff(t, al, agoratest.Quote("agent-"+peer))
		})
	}
}

// callsTools has an agent call the tools of a toolbox.
func callsTools(t *testing.T, al *agoratest.Client, box string) {
	t.Helper()
	call := func(tool, arguments string) {
		t.Helper()
		al.Send(fmt.Sprintf(`{"type":"call_tool","id":%q,"to":%s,"tool_name":%q,"arguments":%s}`, "t-"+tool, box, tool, arguments))
	}
	call("add", `{"a":20,"b":22}`)
	al.Await(`{"type":"tool.result","id":"t-add","body":42}`)
	call("add", `{"a":20,"b":"x"}`)
	al.Await(`{"type":"error","request_id":"t-add","code":"INVALID_REQUEST"}`)
	call("echo", `{"n":1.50,"s":"ü"}`)
	al.Await(`{"type":"tool.result","id":"t-echo","body":{"n":1.50,"s":"ü"}}`)
	call("bytes", `{"n":3}`)
	al.Await(`{"type":"tool.result","id":"t-bytes","body":{"content":[{"media":"image/*","data":"AAEC"}]}}`)
	call("wrong", `{}`)
	al.Await(`{"type":"tool.result","id":"t-wrong","error":{"code":"STREAM_ABORTED","message":"it is wrong"}}`)
	call("fail", `{"code":"FAILED_PRECONDITION"}`)
	al.Await(`{"type":"tool.result","id":"t-fail","error":{"code":"INVALID_REQUEST","message":"it fails: FAILED_PRECONDITION"}}`)
	call("none", `{}`)
	al.Await(`{"type":"error","request_id":"t-none","code":"NOT_FOUND"}`)
}

// streams has an agent of a WebSocket hold sessions with a node that says back what it hears.
func streams(t *testing.T, al *agoratest.Client, node string) {
	t.Helper()
	al.Send(`{"type":"send","to":` + node + `,"stream_id":"st","stream":true,"payload":{"request_id":"r","do":"it"}}`)
	al.Await(`{"type":"reply","from":` + node + `,"stream":true}`)
	al.Await(`{"type":"reply_chunk","from":` + node + `,"chunk":"{\"request_id\":\"r\",\"do\":\"it\"}"}`)
	al.Send(`{"type":"send_chunk","to":` + node + `,"stream_id":"st","chunk":"one"}`)
	al.Await(`{"type":"reply_chunk","from":` + node + `,"chunk":"one"}`)
	al.Send(`{"type":"send_end","to":` + node + `,"stream_id":"st","payload":{"media":"audio/wav","data":"AAH/"}}`)
	al.Await(`{"type":"reply_end","from":` + node + `,"payload":{"content":[{"media":"audio/*","data":"AAH/"}]}}`)
	al.Send(`{"type":"send","to":` + node + `,"payload":{"request_id":"r2"}}`) // START_QUEST and STOP_QUEST
	al.Await(`{"type":"reply_chunk","from":` + node + `,"chunk":"{\"request_id\":\"r2\"}"}`)
	al.Await(`{"type":"reply_end","from":` + node + `}`)
	al.Send(`{"type":"send","to":` + node + `,"stream_id":"cut","stream":true,"payload":"hang"}`)
	al.Await(`{"type":"reply_chunk","from":` + node + `,"chunk":"hanging, timed false"}`)
	al.Send(`{"type":"cancel","to":` + node + `,"stream_id":"cut"}`)
}

// breaksOff has an agent of a WebSocket hold a session that its node ends with a status.
func breaksOff(t *testing.T, al *agoratest.Client, node string) {
	t.Helper()
	al.Send(`{"type":"send","to":` + node + `,"stream_id":"bad","stream":true,"payload":"answer RESOURCE_EXHAUSTED"}`)
	al.Await(`{"type":"reply_chunk","from":` + node + `,"stream_id":"bad","chunk":"so far"}`)
	al.Await(`{"type":"error","code":"STREAM_ABORTED","from":` + node + `,"stream_id":"bad"}`)
}

func TestNodesHoldSessionsWithAnAgentOfAWebSocketAndCallItsTools(t *testing.T) {
	c := start(t)
	for _, p := range []program{nodeProgram(t), pythonProgram(t)} {
		t.Run(p.language, func(t *testing.T) {
			id := "bob of " + p.language
			bob := socket(t, c.URLs[0], fmt.Sprintf(`{"id":%q,"tools":[{"name":"next","description":"adds one","schema":{"type":"object","properties":{"n":{"type":"integer"}}}}]}`, id))
			var playing sync.WaitGroup
			playing.Go(func() { p.plays(await.Context(t), t, id, c.GRPC, "foreign") })
			defer playing.Wait()
			session := `s-` + tagOf(t) + `-foreign`
			bob.Await(fmt.Sprintf(`{"type":"message","from":"caller","stream_id":%q,"payload":{ "do" : "it" }}`, session))
			bob.Send(fmt.Sprintf(`{"type":"reply","to":"caller","stream_id":%q,"stream":true,"request_id":%q,"payload":"it was said"}`, session, session))
			bob.Await(`{"type":"message_chunk","from":"caller","chunk":"one"}`)
			bytes := base64.StdEncoding.EncodeToString(everyByte)
			bob.Await(`{"type":"message_chunk","from":"caller","chunk":"` + bytes + `","media":"image/*"}`)
			reply := func(chunk string) {
				bob.Send(fmt.Sprintf(`{"type":"reply_chunk","to":"caller","stream_id":%q,"chunk":%q}`, session, chunk))
			}
			reply("one image")
			bob.Await(`{"type":"message_chunk","from":"caller","chunk":"two"}`)
			reply("last")
			bob.Await(`{"type":"message_end","from":"caller"}`)
			bob.Send(fmt.Sprintf(`{"type":"reply_end","to":"caller","stream_id":%q,"payload":{"media":"image/png","data":%q}}`, session, bytes))
			f := bob.Await(`{"type":"message"}`)
			if payload := f.Raw("payload"); !strings.Contains(payload, `"tool_name":"next","arguments":{"n": 41}`) {
				t.Errorf("the call of the tool is %s", payload)
			}
			bob.Send(fmt.Sprintf(`{"type":"reply","to":"caller","request_id":%q,"payload":42}`, f.Text("request_id")))
		})
	}
}
