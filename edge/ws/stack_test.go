//go:build !race

package ws

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"

	"github.com/agora-relay/agora/edge/ws/frame"
)

// What an agent that only answers its pings costs in stacks: a goroutine whose stack has never grown. It is what
// every idle connection costs, so a deeper wait would be paid twenty thousand times. The runtime begins stacks as
// large as the average was that its collector last saw, so it takes a few pongs until all are small.
func TestAQuietConnectionKeepsASmallStack(t *testing.T) {
	const connections = 300
	_, s := serve(t, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	before := stacks()
	var fds []int
	for range connections {
		fds = append(fds, bareDial(t, s))
	}
	defer func() {
		for _, fd := range fds {
			syscall.Close(fd)
		}
	}()
	var each int64
	if !await.Within(await.Long, func() bool {
		for _, fd := range fds {
			if _, err := syscall.Write(fd, masked(frame.Final|byte(frame.Pong), "an answer")); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(2 * frame.Brief)
		each = (stacks() - before) / connections
		return each < 2500
	}) {
		t.Errorf("%d bytes of stack for each quiet connection, want little more than 2048", each)
	}
}

func stacks() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.StackInuse)
}
