package agoratest

import "fmt"

// numberScenes are frames that carry a number or an index.
var numberScenes = []scenario{
	{"numbered frames are receipted up to the last one", numbered},
	{"numbers that come again are dropped and receipted", numberedAgain},
	{"numbers go on at another edge", numberedElsewhere},
	{"a number that was passed over is refused, not receipted", numberSkipped},
	{"numbered frames are told delivered up to the last one", numberedTiers},
	{"an index that comes again is dropped", indexAgain},
	{"an index that leaves one out is refused and not stored, and ends the stream", indexSkipped},
	{"receipts of an indexed stream are cumulative", indexReceipts},
	{"receipts of an indexed stream go on at another edge", indexReceiptsElsewhere},
	{"the end of an indexed stream is receipted each time it is sent, at any edge", indexReceiptsAtTheEnd},
	{"an indexed stream goes on at another edge and drops what comes again", indexElsewhere},
}

// numbers has c send numbered one-shots to agent-2.
func (s *scene) numbers(c *Client, from, until int) {
	s.Helper()
	for n := from; n < until; n++ {
		c.Send(fmt.Sprintf(`{"type":"send","to":"agent-2","payload":%d,"n":%d}`, n, n))
	}
}

// awaitNumber waits for the receipt that covers n; earlier ones may come before it.
func (s *scene) awaitNumber(c *Client, status string, n uint64) {
	s.Helper()
	for {
		f := c.ExpectText(`{"type":"receipt","to":"agent-2","n":"<any>","status":"` + status + `"}`)
		if f.Uint("n") == n {
			return
		}
		if f.Uint("n") > n {
			s.Fatalf("receipt %s, want none beyond %d", f, n)
		}
	}
}

func numbered(s *scene) {
	a, b := s.pair()
	s.numbers(a, 1, 21)
	s.awaitNumber(a, "stored", 20)
	s.mailed(b, 1, 21, `,"n":"<any>","session":"<any>"`)
	a.Barrier()
}

func numberedAgain(s *scene) {
	a, b := s.pair()
	s.numbers(a, 1, 6)
	s.awaitNumber(a, "stored", 5)
	s.numbers(a, 4, 8)
	s.awaitNumber(a, "stored", 7)
	s.mailed(b, 1, 8, "")
	b.Barrier()
}

func numberedElsewhere(s *scene) {
	a, b := s.pair()
	s.numbers(a, 1, 11)
	s.mailed(b, 1, 2, "") // some are under way when the socket goes
	a.Drop()
	a = s.agent(2, "agent-1")
	s.numbers(a, 1, 16)
	for f := a.Take("a receipt"); f.Uint("n") < 15; f = a.Take("a receipt") {
	}
	s.mailed(b, 2, 16, `,"redelivered":"<none>"`)
	b.Barrier()
}

func numberSkipped(s *scene) {
	a, b := s.pair()
	s.numbers(a, 1, 3)
	s.awaitNumber(a, "stored", 2)
	s.numbers(a, 4, 5) // one between them may have been refused permanently
	s.awaitNumber(a, "stored", 4)
	s.numbers(a, 3, 4)
	a.Expect(`{"type":"error","code":"INVALID_REQUEST","to":"agent-2","n":3}`)
	s.mailed(b, 1, 3, "")
	s.mailed(b, 4, 5, "")
	b.Barrier()
}

func numberedTiers(s *scene) {
	a := s.agent(0, "agent-1", "receipts", "delivered")
	b := s.agent(1, "agent-2")
	s.numbers(a, 1, 6)
	s.mailed(b, 1, 6, "")
	for stored, delivered := uint64(0), uint64(0); stored < 5 || delivered < 5; {
		f := a.Expect(`{"type":"receipt","to":"agent-2"}`)
		switch f.Text("status") {
		case "stored":
			stored = max(stored, f.Uint("n"))
		case "delivered":
			delivered = max(delivered, f.Uint("n"))
		}
	}
}

func indexReceiptsElsewhere(s *scene) {
	a, _ := s.pair()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true,"index":0,"receipts":["stored"]}`)
	a.Expect(`{"type":"receipt","stream_id":"s","index":0,"status":"stored"}`)
	a.Drop()
	a = s.agent(1, "agent-1")
	s.indexed(a, 1)
	a.Expect(`{"type":"receipt","stream_id":"s","index":1,"status":"stored"}`)
}

// indexReceiptsAtTheEnd: the receipt of the last parts may be lost with the connection, and the cluster have forgotten
// the stream by the time they are sent again.
func indexReceiptsAtTheEnd(s *scene) {
	const end, stored = `{"type":"send_end","to":"agent-2","stream_id":"s","index":2}`, `{"type":"receipt","stream_id":"s","index":2,"status":"stored"}`
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true,"index":0,"receipts":["stored"]}`)
	s.indexed(a, 1)
	a.Send(end)
	a.Await(stored)
	a.Send(end)
	a.Expect(stored)
	a.Drop()
	a = s.agent(1, "agent-1")
	a.Send(end)
	a.Expect(stored)
	b.Await(`{"type":"message_end","stream_id":"s"}`)
	a.Barrier()
	b.Barrier()
}

// indexed has c send indexed chunks of stream s to agent-2.
func (s *scene) indexed(c *Client, indexes ...int) {
	s.Helper()
	for _, i := range indexes {
		c.Send(fmt.Sprintf(`{"type":"send_chunk","to":"agent-2","stream_id":"s","index":%d,"chunk":"%d"}`, i, i))
	}
}

func (s *scene) gotIndexed(c *Client, indexes ...int) {
	s.Helper()
	for _, i := range indexes {
		c.Expect(fmt.Sprintf(`{"type":"message_chunk","stream_id":"s","chunk":"%d","index":%d}`, i, i))
	}
}

const startIndexed = `{"type":"send","to":"agent-2","stream_id":"s","stream":true,"index":0}`

func indexAgain(s *scene) {
	a, b := s.pair()
	a.Send(startIndexed)
	b.Expect(`{"type":"message","stream_id":"s","index":0}`)
	s.indexed(a, 1, 2, 2, 1, 3, 3, 4)
	s.gotIndexed(b, 1, 2, 3, 4)
	a.Barrier()
	a.Send(`{"type":"send_end","to":"agent-2","stream_id":"s","index":5}`)
	b.Expect(`{"type":"message_end","stream_id":"s","index":5}`)
}

func indexSkipped(s *scene) {
	a, b := s.pair()
	a.Send(startIndexed)
	b.Expect(`{"type":"message","stream_id":"s"}`)
	s.indexed(a, 1, 3)
	s.gotIndexed(b, 1)
	a.Expect(`{"type":"error","code":"INVALID_REQUEST","to":"agent-2","stream_id":"s"}`)
	b.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"agent-1","stream_id":"s"}`)
	s.indexed(a, 2, 3) // too late
	a.Send(`{"type":"send","to":"agent-2","payload":"marker"}`)
	b.Expect(`{"type":"message","payload":"marker"}`)
	a.Barrier()
}

func indexReceipts(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true,"index":0,"receipts":["stored"]}`)
	s.indexed(a, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	a.Send(`{"type":"send_end","to":"agent-2","stream_id":"s","index":10}`)
	for last := uint64(0); last < 10; {
		f := a.Expect(`{"type":"receipt","stream_id":"s","status":"stored","index":"<any>"}`)
		if i := f.Uint("index"); i < last {
			s.Errorf("receipt for index %d after %d", i, last)
		} else {
			last = i
		}
	}
	b.Await(`{"type":"message_end","stream_id":"s"}`)
	a.Barrier()
}

func indexElsewhere(s *scene) {
	a, b := s.pair()
	a.Send(startIndexed)
	s.indexed(a, 1, 2, 3)
	b.Expect(`{"type":"message","stream_id":"s"}`)
	s.gotIndexed(b, 1)
	a.Drop()
	a = s.agent(2, "agent-1")
	a.Send(startIndexed)
	s.indexed(a, 1, 2, 3, 4, 5)
	a.Send(`{"type":"send_end","to":"agent-2","stream_id":"s","index":6}`)
	s.gotIndexed(b, 2, 3, 4, 5)
	b.Expect(`{"type":"message_end","stream_id":"s"}`)
	a.Barrier()
}
