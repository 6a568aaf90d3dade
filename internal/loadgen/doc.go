// Package loadgen drives thousands of agents from one process and measures what
// they see: how much arrives, how late, and what it costs the servers.
//
// It drives them through [System] and [Agent], which Agora's edges are behind as well as
// what they are compared with: the loops are the same for all.
// Its clients are lean, since they share the machine with what they measure:
// one goroutine and one small buffer a connection, frames made once in which
// only number and time change, one write a frame, and many frames read at once.
// They speak the protocol of the door: they bind by URL, answer pings and say
// goodbye.
//
// What is paced carries the time at which it was meant to be sent, and counts
// as late from then on: a sender that is held up hides nothing.
package loadgen
