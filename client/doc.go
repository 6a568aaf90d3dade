// Package client connects a Go program to Agora as an agent: it sends and
// receives messages and token streams, takes part in spaces, reconnects to
// another edge when it loses one, and continues where it was.
//
// # What is promised
//
// Send, Publish and the end of a stream return when the cluster has stored
// what was sent. What had no receipt when the connection was lost is sent
// again, in order, and stored once: every frame to an agent carries a number.
// Only when the client comes back too late, and its session is over, can
// nobody know any more: then they return [ErrUnknown], and open streams fail
// with STREAM_ABORTED.
//
// What the edge refuses for the moment, with UNAVAILABLE, is sent again until it is
// stored or Config.Patience is over; what follows to the same receiver waits for
// it, other receivers do not. A stream whose part was refused fails with STREAM_ABORTED.
//
// Messages of one sender arrive in order and once. What may have been lost, because the
// mailbox could not keep it, is told to Config.OnGap.
//
// # What acknowledged means
//
// A message is acknowledged when the application is done with it: the body of
// its [Client.Messages] loop has ended, its [Client.Handle] function has
// returned, or [Client.Request] has returned it. A streamed message is
// acknowledged when its stream was read to its end, or closed, as well: until
// then none of it is, so that a program that starts again gets it whole, from its
// beginning, and what had come behind it again; it is marked as redelivered. The
// same holds for events in parts. Acknowledgements are cumulative and written behind: every 64 frames or
// 200 ms.
//
// # Being slow
//
// A program that takes nothing costs no memory without bound: beyond
// Config.MaxBuffered the socket is not read, and the cluster keeps the rest. While
// a call of this client waits for an answer that stands behind those frames,
// reading continues, up to four times as much; what comes beyond is dropped and
// fetched again once there is room. A stream that was handed out and is not
// read holds up the others for Config.Stall at most; then it is cancelled.
// An unread space holds up nobody: its events are fetched again later.
package client
