package aip

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora/internal/budget"
)

// Answers that list nodes are bounded, as the libraries of gRPC take 4 MiB where nobody says otherwise. Anyone who asks
// for pages gets whole nodes, a page at a time; who does not, as the protocol knows no pages, gets one answer, with
// less of each node where they are too many.

// MaxListing is how many bytes the nodes in an answer have at most.
const MaxListing = 4<<20 - 256<<10

// maxLinkListing is MaxListing for a gateway that knows no pages yet. Such a one takes 16 MiB, and takes nodes for gone
// that are not listed.
const maxLinkListing = 16<<20 - 256<<10

// Metadata of calls of GetNodes and RegisterAgent. Ids may have any characters, so they are binary.
const (
	afterKey   = "agora-aip-after-bin" // of a request: the id behind which a page begins, empty for the first page
	nextKey    = "agora-aip-next-bin"  // of an answer: what to ask for as the next page; missing at the end
	leftOutKey = "agora-aip-left-out"  // of an answer: "schemas", "descriptions" and "nodes", as far as they are left out
)

const leftSchemas = "schemas" // as [budget.Cut] names them

// AfterOf returns the id behind which the page begins that a call asks for; false for one that asks for no page.
func AfterOf(ctx context.Context) (id string, paged bool) {
	if all := metadata.ValueFromIncomingContext(ctx, afterKey); len(all) > 0 {
		return all[0], true
	}
	return "", false
}

// LeftOut returns what an answer with such a header has left out; nil for nothing.
func LeftOut(header metadata.MD) []string { return header.Get(leftOutKey) }

// ListingOf returns the bytes that the answer to a call may have.
func ListingOf(ctx context.Context) int {
	if _, paged := AfterOf(ctx); !paged && PathOf(ctx) != nil {
		return maxLinkListing
	}
	return MaxListing
}

// Bound returns those of nodes, sorted by id, with which a call is answered, and says in the header of the answer what
// is missing. all says that the nodes given are all that there are behind the last page, and whole. They stay as they
// are.
func Bound(ctx context.Context, peers []*Peer, all bool) ([]*Peer, error) {
	after, paged := AfterOf(ctx)
	if !paged {
		return inOne(ctx, peers, all)
	}
	first, there := slices.BinarySearchFunc(peers, after, func(p *Peer, id string) int {
		if id := IDOf(p); id > after {
			return 1
		} else if id < after {
			return -1
		}
		return 0
	})
	if there {
		first++
	}
	page, more := budget.Page(slices.Values(peers[first:]), len(peers), ListingOf(ctx), func(p *Peer) (*Peer, int) { return p, listedSize(p) })
	if len(page) == 0 || !more && all {
		return page, nil
	}
	return page, grpc.SetHeader(ctx, metadata.Pairs(nextKey, IDOf(page[len(page)-1])))
}

// BoundRegistered is Bound for the answer to an agent that has registered, which knows no pages and has that agent
// whatever is left out.
func BoundRegistered(ctx context.Context, self string, peers []*Peer, all bool) ([]*Peer, error) {
	first := slices.IndexFunc(peers, func(p *Peer) bool { return IDOf(p) == self })
	if first > 0 {
		peers = slices.Concat(peers[first:first+1], peers[:first], peers[first+1:])
	}
	peers, err := inOne(ctx, peers, all)
	peers = slices.Clone(peers)
	slices.SortFunc(peers, func(a, b *Peer) int { return strings.Compare(IDOf(a), IDOf(b)) })
	return peers, err
}

// inOne is Bound for an answer that is no page.
func inOne(ctx context.Context, peers []*Peer, all bool) ([]*Peer, error) {
	fit, leftOut := fit(peers, ListingOf(ctx))
	if !all && !slices.Contains(leftOut, leftSchemas) {
		leftOut = append([]string{leftSchemas}, leftOut...)
	}
	if leftOut == nil {
		return fit, nil
	}
	return fit, grpc.SetHeader(ctx, metadata.MD{leftOutKey: leftOut})
}

// IDOf returns the id of a node; empty for what is none.
func IDOf(p *Peer) string {
	if id := p.GetAgentInfo().GetAgentId(); id != "" {
		return id
	}
	return p.GetToolboxInfo().GetToolboxId()
}

// listedSize returns the bytes of a node in an answer.
func listedSize(p *Peer) int { return 1 + sizeBytes(proto.Size(p)) }

// sizeBytes returns the bytes of a field of a length, its tag aside.
func sizeBytes(n int) int {
	size := n + 1
	for ; n >= 1<<7; n >>= 7 {
		size++
	}
	return size
}

// fit returns nodes with less of each, where they are too large together for an answer of so many bytes: see
// [budget.Fit].
func fit(peers []*Peer, bytes int) (fit []*Peer, leftOut []string) {
	items := make([]budget.Item, len(peers))
	for i, p := range peers {
		items[i].Bytes = listedSize(p)
		eachText(p, func(s *string, schema bool) {
			if of := &items[i].Descriptions; !schema {
				*of = append(*of, len(*s))
			} else {
				items[i].Schemas = append(items[i].Schemas, len(*s))
			}
		})
	}
	cut := budget.Fit(items, bytes)
	if leftOut = cut.LeftOut("nodes"); leftOut == nil {
		return peers, nil
	}
	fit = make([]*Peer, cut.Entries)
	for i := range fit {
		fit[i] = proto.CloneOf(peers[i])
		eachText(fit[i], func(s *string, schema bool) {
			if schema && !cut.KeepsSchema(len(*s)) || !schema && !cut.KeepsDescription(len(*s)) {
				*s = ""
			}
		})
	}
	return fit, leftOut
}

// eachText goes through the texts of a node that an answer may leave out.
func eachText(p *Peer, visit func(s *string, schema bool)) {
	if a := p.GetAgentInfo(); a != nil {
		visit(&a.Description, false)
		for _, s := range a.Skills {
			visit(&s.Capability, false)
		}
	}
	if b := p.GetToolboxInfo(); b != nil {
		visit(&b.Description, false)
		for _, t := range b.Tools {
			visit(&t.Arguments, true)
			visit(&t.Description, false)
		}
	}
}

// AllNodes asks a gateway for nodes, page by page: whole ones, sorted by id, where it knows pages, and else for what it
// answers at once. RESOURCE_EXHAUSTED where they are more than so many bytes.
func AllNodes(ctx context.Context, gateway GatewayServiceClient, in *GetNodesRequest, most int, opts ...grpc.CallOption) (all []*Peer, err error) {
	for after := ""; ; {
		var header metadata.MD
		page, err := gateway.GetNodes(metadata.AppendToOutgoingContext(ctx, afterKey, after), in, append(opts[:len(opts):len(opts)], grpc.Header(&header))...)
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetPeers()...)
		if most -= proto.Size(page); most < 0 {
			return nil, status.Error(codes.ResourceExhausted, "the gateway has more nodes than are read")
		}
		next := header.Get(nextKey)
		if len(next) == 0 || next[0] <= after { // it would never end
			return all, nil
		}
		after = next[0]
	}
}
