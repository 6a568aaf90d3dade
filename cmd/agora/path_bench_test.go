package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora/broker/natsd"
)

// The benchmarks of the whole path: WebSocket to WebSocket through a cluster of
// three edges, next to plain core NATS between as many clients in the same
// run. Servers are processes of their own (this test binary, started again), so that their CPU can be told.

const (
	benchAgents = 1000
	benchBatch  = 1   // chunks that a sender writes at once: tokens come one by one
	benchWindow = 128 // batches under way per stream
	benchText   = 100 // bytes of a chunk
)

// serverEnv names the server that a process of this binary is to be.
const serverEnv = "AGORA_BENCH_SERVER"

// TestBenchServer is no test: it is the server's process of a benchmark.
func TestBenchServer(t *testing.T) {
	switch os.Getenv(serverEnv) {
	case "agora":
		args := []string{"dev", "--edges", "3", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--grpc-addr", "none", "--p2p-addr", "none", "--data", t.TempDir()}
		run(t.Context(), args, strings.NewReader(""), os.Stdout, os.Stderr)
	case "nats":
		s, err := natsd.Embed(t.Context(), natsd.Config{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("nats", s.URL())
		io.Copy(io.Discard, os.Stdin) // until the benchmark is over
		s.Shutdown()
	}
}

// benchServer is a running server process.
type benchServer struct {
	cmd   *exec.Cmd
	stdin io.Closer
	at    []string // addresses that it printed
}

func startBenchServer(b *testing.B, name string, want int, parse func(line string) (string, bool)) *benchServer {
	b.Helper()
	s := &benchServer{cmd: exec.Command(os.Args[0], "-test.run=^TestBenchServer$", "-test.timeout=10m")}
	if dir := os.Getenv("AGORA_BENCH_PROFILE"); dir != "" {
		s.cmd.Args = append(s.cmd.Args, "-test.cpuprofile="+dir+"/"+name+".cpu", "-test.memprofile="+dir+"/"+name+".mem", "-test.memprofilerate=16384")
	}
	s.cmd.Env = append(os.Environ(), serverEnv+"="+name)
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	in, err := s.cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	s.stdin = in
	if err := s.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		s.cmd.Process.Signal(os.Interrupt)
		s.cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for len(s.at) < want && lines.Scan() {
		if at, ok := parse(lines.Text()); ok {
			s.at = append(s.at, at)
		}
	}
	if len(s.at) < want {
		b.Fatalf("%s did not start", name)
	}
	return s
}

func startAgora(b *testing.B) *benchServer {
	return startBenchServer(b, "agora", 3, func(line string) (string, bool) {
		_, rest, ok := strings.Cut(line, "ws://")
		at, _, _ := strings.Cut(rest, "/ws")
		return at, ok
	})
}

func startNATS(b *testing.B) *benchServer {
	return startBenchServer(b, "nats", 1, func(line string) (string, bool) { return strings.CutPrefix(line, "nats ") })
}

// cpu returns the user and system time of the process, from /proc.
func (s *benchServer) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// pair is one sender's stream to one receiver, however it is carried.
type pair struct {
	send    func(batch [][]byte) error // writes chunks; their text is benchText bytes
	credits chan struct{}              // batches that may still be under way
	got     int                        // chunks since the last credit; the receiver's own
}

// meter counts what arrives, and how late.
type meter struct {
	chunks atomic.Int64
	mu     sync.Mutex // guards late
	late   []time.Duration
}

// arrived takes a chunk's text, which begins with the time it was sent.
func (m *meter) arrived(p *pair, text []byte, timed bool) {
	m.chunks.Add(1)
	if timed {
		sent, _ := strconv.ParseInt(string(text[:19]), 10, 64)
		late := time.Duration(time.Now().UnixNano() - sent)
		m.mu.Lock()
		m.late = append(m.late, late)
		m.mu.Unlock()
		return
	}
	if p.got++; p.got == benchBatch {
		p.got = 0
		p.credits <- struct{}{}
	}
}

func (m *meter) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.late = m.late[:0]
}

func (m *meter) quantiles() (p50, p99 time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.late) == 0 {
		return 0, 0
	}
	slices.Sort(m.late)
	return m.late[len(m.late)/2], m.late[len(m.late)*99/100]
}

func stamp() []byte {
	text := bytes.Repeat([]byte{'x'}, benchText)
	strconv.AppendInt(text[:0], time.Now().UnixNano(), 10)
	return text
}

// saturate sends as fast as the credits allow, and returns chunks per second and
// the server's CPU per chunk, after a warm-up.
func saturate(b *testing.B, s *benchServer, pairs []*pair, m *meter) (rate float64, perChunk time.Duration) {
	ctx, cancel := context.WithCancel(b.Context())
	var senders sync.WaitGroup
	batch := make([][]byte, benchBatch)
	for i := range batch {
		batch[i] = stamp()
	}
	for _, p := range pairs {
		for range benchWindow {
			p.credits <- struct{}{}
		}
		senders.Go(func() {
			for {
				select {
				case <-p.credits:
					if p.send(batch) != nil {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	window(b, time.Second)
	began, chunks, cpu := time.Now(), m.chunks.Load(), s.cpu()
	window(b, 4*time.Second)
	n := m.chunks.Load() - chunks
	rate, perChunk = float64(n)/time.Since(began).Seconds(), (s.cpu()-cpu)/time.Duration(max(n, 1))
	cancel()
	senders.Wait()
	return rate, perChunk
}

// window lets the load run for a while: it is what is measured, not waited for.
func window(b *testing.B, d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.Context().Done():
	}
}

// paced sends so many chunks a second in all, each alone, for some seconds.
func paced(b *testing.B, pairs []*pair, perSecond, seconds int) {
	every := time.NewTicker(time.Second / time.Duration(perSecond/5))
	defer every.Stop()
	for i := range seconds * perSecond / 5 { // five at each tick: a ticker has its limits
		<-every.C
		for k := range 5 {
			if err := pairs[(5*i+k)%len(pairs)].send([][]byte{stamp()}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func newPair() *pair { return &pair{credits: make(chan struct{}, benchWindow+1)} }

// overAgora connects the agents, each with a stream to the next one, which is at another edge.
func overAgora(b *testing.B, s *benchServer, m *meter, timed bool) []*pair {
	conns := make([]*benchConn, benchAgents)
	for i := range conns {
		conns[i] = dialBench(b, s.at[i%len(s.at)], "agent-"+strconv.Itoa(i))
	}
	pairs := make([]*pair, benchAgents)
	for i, c := range conns {
		to := (i + 1) % benchAgents
		p := newPair()
		pairs[i] = p
		c.text(`{"type":"send","to":"agent-` + strconv.Itoa(to) + `","stream_id":"s","stream":true}`)
		head := `{"type":"send_chunk","to":"agent-` + strconv.Itoa(to) + `","stream_id":"s","chunk":"`
		p.send = func(batch [][]byte) error {
			var out []byte
			for _, text := range batch {
				out = appendMasked(out, 1, head, text, `"}`)
			}
			_, err := c.Write(out)
			return err
		}
		go conns[to].receive(func(text []byte) { m.arrived(p, text, timed) }) // ends with its connection
	}
	return pairs
}

// overNATS connects as many clients to plain NATS. They speak its protocol as
// barely as those of Agora speak WebSocket: one write for what is sent at once.
func overNATS(b *testing.B, s *benchServer, m *meter, timed bool) []*pair {
	at := strings.TrimPrefix(s.at[0], "nats://")
	conns := make([]*benchConn, benchAgents)
	for i := range conns {
		conns[i] = dialNATS(b, at)
	}
	pairs := make([]*pair, benchAgents)
	for i, c := range conns {
		to := (i + 1) % benchAgents
		p := newPair()
		pairs[i] = p
		fmt.Fprintf(conns[to], "SUB agent.%d 1\r\nPING\r\n", to)
		if line, err := conns[to].r.ReadString('\n'); err != nil || line != "PONG\r\n" {
			b.Fatalf("subscription of %d: %q, %v", to, line, err)
		}
		head := fmt.Sprintf("PUB agent.%d %d\r\n", to, benchText)
		p.send = func(batch [][]byte) error {
			var out []byte
			for _, text := range batch {
				out = append(append(append(out, head...), text...), "\r\n"...)
			}
			_, err := c.Write(out)
			return err
		}
		go conns[to].receiveNATS(func(text []byte) { m.arrived(p, text, timed) }) // ends with its connection
	}
	return pairs
}

func dialNATS(b *testing.B, at string) *benchConn {
	nc, err := net.Dial("tcp", at)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { nc.Close() })
	c := &benchConn{nc, bufio.NewReaderSize(nc, 8192)}
	if line, err := c.r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "INFO") {
		b.Fatalf("greeting %q, %v", line, err)
	}
	fmt.Fprint(nc, "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n")
	return c
}

// receiveNATS calls f with the text of every message until the connection is gone.
func (c *benchConn) receiveNATS(f func(text []byte)) {
	for {
		line, err := c.r.ReadSlice('\n')
		switch {
		case err != nil:
			return
		case bytes.HasPrefix(line, []byte("PING")):
			fmt.Fprint(c, "PONG\r\n")
		case bytes.HasPrefix(line, []byte("MSG")):
			text, err := c.r.Peek(benchText + 2)
			if err != nil {
				return
			}
			f(text[:benchText])
			c.r.Discard(benchText + 2)
		}
	}
}

// benchConn is a WebSocket client that costs next to nothing.
type benchConn struct {
	net.Conn
	r *bufio.Reader
}

func dialBench(b *testing.B, at, agent string) *benchConn {
	nc, err := net.Dial("tcp", at)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { nc.Close() })
	fmt.Fprintf(nc, "GET /ws?agent_id=%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", agent, at)
	c := &benchConn{nc, bufio.NewReaderSize(nc, 8192)}
	for { // the answer's head
		line, err := c.r.ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		if line == "\r\n" {
			break
		}
	}
	if _, payload, err := c.frame(); err != nil || !bytes.Contains(payload, []byte("agent.registered")) {
		b.Fatalf("registration of %s: %s, %v", agent, payload, err)
	}
	return c
}

func (c *benchConn) text(s string) { c.Write(appendMasked(nil, 1, s, nil, "")) }

// receive calls f with the text of every chunk until the connection is gone.
func (c *benchConn) receive(f func(text []byte)) {
	for {
		op, payload, err := c.frame()
		switch {
		case err != nil:
			return
		case op == 9:
			c.Write(appendMasked(nil, 10, "", payload, ""))
		case bytes.HasPrefix(payload, []byte(`{"type":"message_chunk"`)):
			at := bytes.Index(payload, []byte(`"chunk":"`)) + 9
			f(payload[at : at+benchText])
		}
	}
}

// frame reads one server frame. The payload is good until the next one is read.
func (c *benchConn) frame() (op byte, payload []byte, err error) {
	head, err := c.r.Peek(2)
	if err != nil {
		return 0, nil, err
	}
	op, n, skip := head[0]&15, int(head[1]), 2
	if n == 126 {
		if head, err = c.r.Peek(4); err != nil {
			return 0, nil, err
		}
		n, skip = int(binary.BigEndian.Uint16(head[2:])), 4
	}
	c.r.Discard(skip)
	if payload, err = c.r.Peek(n); err == nil {
		c.r.Discard(n)
	}
	return op, payload, err
}

// appendMasked appends a client's frame; its mask is nothing, which is as good as any.
func appendMasked(dst []byte, op byte, head string, text []byte, tail string) []byte {
	n := len(head) + len(text) + len(tail)
	dst = append(dst, 0x80|op)
	if n < 126 {
		dst = append(dst, 0x80|byte(n))
	} else {
		dst = append(dst, 0x80|126, byte(n>>8), byte(n))
	}
	dst = append(dst, 0, 0, 0, 0)
	return append(append(append(dst, head...), text...), tail...)
}

// BenchmarkPathSaturated: a busy stream per agent, 1,000 agents, 3 edges, file storage.
func BenchmarkPathSaturated(b *testing.B) {
	for b.Loop() {
		var plain, relayed float64
		b.Run("nats", func(b *testing.B) {
			var m meter
			s := startNATS(b)
			rate, cpu := saturate(b, s, overNATS(b, s, &m, false), &m)
			plain = rate
			b.ReportMetric(rate, "chunks/s")
			b.ReportMetric(float64(cpu.Nanoseconds())/1e3, "server-µs/chunk")
		})
		b.Run("agora", func(b *testing.B) {
			var m meter
			s := startAgora(b)
			rate, cpu := saturate(b, s, overAgora(b, s, &m, false), &m)
			relayed = rate
			b.ReportMetric(rate, "chunks/s")
			b.ReportMetric(float64(cpu.Nanoseconds())/1e3, "server-µs/chunk")
			b.ReportMetric(relayed/max(plain, 1), "of-nats")
		})
	}
}

// BenchmarkPathPaced: the same agents, 5,000 chunks a second in all.
func BenchmarkPathPaced(b *testing.B) {
	report := func(b *testing.B, s *benchServer, m *meter, pairs []*pair) {
		paced(b, pairs, 5000, 2) // until every stream has begun
		window(b, time.Second)
		m.forget()
		cpu, n := s.cpu(), m.chunks.Load()
		paced(b, pairs, 5000, 4)
		p50, p99 := m.quantiles()
		b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
		b.ReportMetric(float64(p99.Microseconds()), "p99-µs")
		b.ReportMetric(float64((s.cpu()-cpu).Microseconds())/float64(max(m.chunks.Load()-n, 1)), "server-µs/chunk")
	}
	for b.Loop() {
		b.Run("nats", func(b *testing.B) {
			var m meter
			s := startNATS(b)
			report(b, s, &m, overNATS(b, s, &m, true))
		})
		b.Run("agora", func(b *testing.B) {
			var m meter
			s := startAgora(b)
			report(b, s, &m, overAgora(b, s, &m, true))
		})
	}
}
