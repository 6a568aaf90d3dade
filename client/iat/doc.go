// Package iat connects Go programs to Agora by the IAT dialect: hosts, which give tasks to other agents, and
// sub-agents, which do them. Envelopes go by POST and come by server-sent events, so that nothing but HTTP has to pass
// between a program and an edge.
//
// # Hosts
//
// [Host.Execute] gives a task to an agent and returns a [Run], from which its chunks are read as they come, and then
// its result. What the agent asks of the host meanwhile, tools and approvals, comes by the downlink that [Host.Serve]
// runs. A host that offers neither needs none.
//
// # Sub-agents
//
// [Agent.Serve] registers the agent and its tools, and calls the function of [Agent.OnExecute] for each task. A [Task]
// sends chunks and thoughts, calls the host's tools and asks for approval.
//
// # What is promised
//
// A call that sends an envelope returns when the cluster has stored it. What broke on its way is sent again, to another
// edge if need be, under the same id, and is stored once. A run whose edge dies is asked for again elsewhere, under its
// id: it is not done twice, and its chunks come once and in order.
//
// A downlink continues at another edge before the first envelope that is not done: its handler has not returned. What
// the program has been given already it is not given again. A program that starts again is given again what it was not
// known to be done with; [Task].Redelivered says so.
//
// # Being slow
//
// Handlers of one execute are called one after another, in order, those of different ones at the same time,
// Config.Handlers at most. While more than Config.MaxBuffered bytes wait for a handler the downlink is not read, and
// the cluster keeps the rest.
package iat
