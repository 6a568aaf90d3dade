//go:build unix

package aip_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// bare starts what passes calls of tools on by gRPC, as the bytes that they are, and does nothing else: the least that
// a gateway can cost. It returns its address.
func bare(b *testing.B, to *grpc.ClientConn) string {
	s := wire.ToolService_ServiceDesc
	s.HandlerType = (*any)(nil)
	s.Methods = []grpc.MethodDesc{{MethodName: "CallTool", Handler: func(_ any, ctx context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		in, out := new(wire.Frame), new(wire.Frame)
		if err := dec(in); err != nil {
			return nil, err
		}
		defer in.Free()
		return out, to.Invoke(ctx, wire.ToolService_CallTool_FullMethodName, in, out, grpc.ForceCodecV2(wire.Codec{}))
	}}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec{}))
	server.RegisterService(&s, struct{}{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	b.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return l.Addr().String()
}

// cpu reports how long all processors have worked for each of some operations, until stop is called.
func cpu(b *testing.B) (stop func()) {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	b.ReportAllocs()
	b.ResetTimer()
	return func() {
		b.StopTimer()
		b.ReportMetric(float64(used()-before)/float64(time.Microsecond)/float64(b.N), "cpu-µs/op")
	}
}

// BenchmarkToolCall calls a tool, from 1 and from 64 callers at a time: directly, through what only passes calls on,
// and by an edge that another one has registered the toolbox with. Caller and toolbox are in this process as well: what
// is in the middle costs the difference.
func BenchmarkToolCall(b *testing.B) {
	s := open(b, setup{Options: agoratest.Options{Edges: 2}})
	n := startNode(b, &node{})
	s.toolbox(0, "box", n)
	called := func(at string) func(context.Context, *wire.ToolRequest) error {
		c := wire.NewToolServiceClient(dial(b, at, ""))
		return func(ctx context.Context, in *wire.ToolRequest) error {
			_, err := c.CallTool(ctx, in)
			return err
		}
	}
	gateway := s.gateway(1, "")
	call := map[string]func(context.Context, *wire.ToolRequest) error{
		"direct": called(n.addr),
		"bare":   called(bare(b, dial(b, n.addr, ""))),
		"edge": func(ctx context.Context, in *wire.ToolRequest) error {
			_, err := gateway.RouteToolCalling(ctx, in)
			return err
		},
	}
	for _, callers := range []int{1, 64} {
		for _, way := range []string{"direct", "bare", "edge"} {
			b.Run(fmt.Sprint(callers, "/", way), func(b *testing.B) {
				defer cpu(b)()
				var all sync.WaitGroup
				for k := range callers {
					all.Go(func() {
						in := &wire.ToolRequest{SenderId: "c", ReceiverId: "box", SessionId: "s", ToolName: "t", Arguments: `"` + strings.Repeat("x", 98) + `"`}
						for range share(b.N, callers, k) {
							if err := call[way](b.Context(), in); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
			})
		}
	}
}

// share returns how many of n fall to the k-th of some parties.
func share(n, parties, k int) int { return (n*(k+1))/parties - (n*k)/parties }

// BenchmarkSession sends messages of 1 KiB and of 1 MiB in one session, which come back: directly, and by an edge that
// another one has registered the agent with.
func BenchmarkSession(b *testing.B) {
	s := open(b, setup{Options: agoratest.Options{Edges: 2}})
	n := startNode(b, &node{})
	s.registered(0, "a", n)
	type session interface {
		Send(*wire.AgentMessage) error
		Recv() (*wire.AgentMessage, error)
		CloseSend() error
	}
	begin := map[string]func(context.Context) (session, error){
		"direct": func(ctx context.Context) (session, error) {
			return wire.NewAgentServiceClient(dial(b, n.addr, "")).CallAgent(ctx)
		},
		"edge": func(ctx context.Context) (session, error) { return s.gateway(1, "").RouteAgentCalling(ctx) },
	}
	for name, size := range map[string]int{"1KiB": 1 << 10, "1MiB": 1 << 20} {
		for _, way := range []string{"direct", "edge"} {
			b.Run(name+"/"+way, func(b *testing.B) {
				c, err := begin[way](await.Context(b))
				if err != nil {
					b.Fatal(err)
				}
				content := text(strings.Repeat("x", size))
				b.SetBytes(int64(size))
				defer cpu(b)()
				var saying sync.WaitGroup
				saying.Go(func() {
					for k := range b.N + 1 {
						m := asks("c", "a", "s", wire.AgentMessage_HOLD_QUEST, content)
						if k == 0 {
							m.SessionStatus = wire.AgentMessage_START_QUEST
						}
						if k == b.N {
							m = asks("c", "a", "s", wire.AgentMessage_STOP_QUEST)
						}
						if err := c.Send(m); err != nil {
							b.Error(err)
							return
						}
					}
				})
				heard := 0
				for _, err = c.Recv(); err == nil; _, err = c.Recv() {
					heard++
				}
				saying.Wait()
				if !errors.Is(err, io.EOF) || heard != b.N+1 {
					b.Errorf("%d messages came, and then %v, want %d", heard, err, b.N+1)
				}
			})
		}
	}
}
