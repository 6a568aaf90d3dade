package bench

import (
	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/internal/loadgen"
)

func newBenchStream() *cobra.Command {
	var o loadOptions
	cmd := o.command(loadgen.Stream, "Streams of tokens from agent to agent, across edges",
		"Senders have a stream open to receivers at other edges, and send parts of it, one write each. With as many senders as\n"+
			"receivers each has one stream; of the smaller side, each has several.")
	cmd.Example = "  agora bench stream --embedded --senders 1000 --receivers 1000 --rate 10000"
	f := cmd.Flags()
	f.IntVar(&o.Senders, "senders", 50, "agents that send")
	f.IntVar(&o.Receivers, "receivers", 50, "agents that receive")
	f.IntVar(&o.Window, "window", 128, "with --rate 0: parts of a stream that may be under way; more wait for the receiver to have some")
	return cmd
}

func newBenchOneShot() *cobra.Command {
	var o loadOptions
	cmd := o.command(loadgen.OneShot, "Messages with receipts, from agent to agent, across edges",
		"Senders send messages to receivers at other edges, and each message is answered by a receipt once it is stored. Measured is\n"+
			"how long the message takes to its receiver, and how long the receipt takes to its sender.")
	cmd.Example = "  agora bench oneshot --embedded --senders 1 --receivers 1 --in-flight 1"
	f := cmd.Flags()
	f.IntVar(&o.Senders, "senders", 50, "agents that send")
	f.IntVar(&o.Receivers, "receivers", 50, "agents that receive")
	f.IntVar(&o.Window, "in-flight", 16, "with --rate 0: messages from one agent to another that may lack receipt or arrival")
	return cmd
}

func newBenchFanOut() *cobra.Command {
	var o loadOptions
	cmd := o.command(loadgen.FanOut, "Events in one space, to all its members",
		"Members at all edges are in one space; some of them publish, and every event comes to each, its publisher included.\n"+
			"Arrivals are counted, not events.")
	cmd.Example = "  agora bench fanout --embedded --members 1000 --rate 100"
	f := cmd.Flags()
	f.IntVar(&o.Receivers, "members", 100, "members of the space")
	f.IntVar(&o.Senders, "senders", 1, "members that publish")
	f.IntVar(&o.Window, "window", 64, "with --rate 0: events of one publisher that may be under way; more wait until a member at each edge has some")
	return cmd
}
