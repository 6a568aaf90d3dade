// Package verify holds what arrives against what was sent: what a sender was
// told is stored must arrive at each receiver once, in order, and streams must
// be whole or be shown as aborted.
//
// Everything that is sent carries a number. A Line is what one sender sends to
// one address, and a Track is what one receiver gets of it; a number that a
// later one has overtaken is lost, or comes out of order. What receivers are
// told to be lost is counted apart: gaps, aborted streams, and what nobody
// knows the outcome of. A Flow is a stream whose chunks are numbered by
// themselves, an Order what all members of a space must see in one order.
//
// The package does nothing by itself: its callers send, receive, and have the
// clock. Memory is bounded by what is under way, whatever the length of a run.
package verify
