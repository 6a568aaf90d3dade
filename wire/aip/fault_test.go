package aip

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/agora-relay/agora"
)

func TestTheTextsOfTheProtocolAreLiteral(t *testing.T) {
	for _, c := range []struct {
		err  *agora.Error
		code codes.Code
		text string
	}{
		{FirstNotStart(), codes.InvalidArgument, "First message must be START_QUEST"},
		{NoSession(), codes.InvalidArgument, "Missing session_id in START_QUEST"},
		{NoReceiver(), codes.NotFound, "Receiver not found"},
		{agora.UnknownAgent("x"), codes.NotFound, "Receiver not found"},
		{Empty(), codes.Aborted, "Empty request stream"},
		{AgentExists("x"), codes.AlreadyExists, "Agent [x] already registered."},
		{ToolboxExists("x%d"), codes.AlreadyExists, "Tool [x%d] already registered."},
		{AddressExists("h:1"), codes.AlreadyExists, "Address [h:1] already registered."},
	} {
		if s := Status(c.err); s.Code() != c.code || s.Message() != c.text {
			t.Errorf("got %v %q, want %v %q", s.Code(), s.Message(), c.code, c.text)
		}
	}
	if got := UnknownNode("x"); got != "Node x not registered" {
		t.Errorf("an unknown node is told %q", got)
	}
}

func TestCodesComeFromTheOneTable(t *testing.T) {
	for _, code := range agora.Codes() {
		c := CodeOf(code)
		if uint32(c) != code.Status().GRPC {
			t.Errorf("%s is %v", code, c)
		}
		if back := FromCode(c); CodeOf(back) != c {
			t.Errorf("%s is %v, which is %s", code, c, back)
		}
	}
	for c := codes.Code(0); c <= codes.Unauthenticated; c++ {
		if code := FromCode(c); (code == "") != (c == codes.OK) {
			t.Errorf("%v is %q", c, code)
		}
	}
	if got := FromCode(99); got != agora.StreamAborted {
		t.Errorf("99 is %q", got)
	}
}

func TestCodesThatSpeakOfTheAgentDeregisterIt(t *testing.T) {
	want := map[codes.Code]bool{codes.Internal: true, codes.Unknown: true, codes.Unavailable: true, codes.Unimplemented: true, codes.DataLoss: true}
	for c := codes.Code(0); c <= codes.Unauthenticated+1; c++ {
		if got := Deregisters(c); got != want[c] {
			t.Errorf("%v deregisters: %v, want %v", c, got, want[c])
		}
	}
}

func TestAStatusSaysWhenToTryAgain(t *testing.T) {
	s := Status(&agora.Error{Code: agora.Unavailable, Message: "busy", RetryAfter: 1500 * time.Millisecond})
	if s.Code() != codes.Unavailable || s.Message() != "busy" || len(s.Proto().GetDetails()) != 1 {
		t.Fatalf("got %v", s.Proto())
	}
	d := s.Proto().GetDetails()[0]
	var delay []byte
	seconds, nanos := uint64(0), uint64(0)
	for f := (fields{rest: d.GetValue()}); f.next(); {
		delay = f.bytes
	}
	for f := (fields{rest: delay}); f.next(); {
		if f.kind != protowire.VarintType {
			t.Fatalf("a field of kind %v", f.kind)
		}
		if f.number == 1 {
			seconds = f.varint
		} else {
			nanos = f.varint
		}
	}
	if d.GetTypeUrl() != "type.googleapis.com/google.rpc.RetryInfo" || seconds != 1 || nanos != 500_000_000 {
		t.Errorf("got %s of %d s %d ns", d.GetTypeUrl(), seconds, nanos)
	}
	if s := Status(errors.New("a secret")); s.Code() != codes.Unavailable || s.Message() != "the cluster can't do this now" {
		t.Errorf("another error is %v", s)
	}
	if s := Status(nil); s.Code() != codes.OK {
		t.Errorf("nil is %v", s)
	}
}

func TestANodesFailureKeepsItsText(t *testing.T) {
	if e := Failure(status.New(codes.Internal, "boom\xff")); e.Code != agora.StreamAborted || e.Message != "boom\uFFFD" {
		t.Errorf("got %v", e)
	}
	if e := Failure(status.New(codes.OK, "")); e != nil {
		t.Errorf("OK is %v", e)
	}
}
