package presence

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var sources embed.FS

// known is the text of every script, by the digest that a server knows it by.
var known = map[string]string{}

// script is one atomic step: its file behind what it needs of the prelude. It is to be called where the package begins.
func script(name string) *redis.Script {
	text := withPrelude(source(name))
	s := redis.NewScript(text)
	known[s.Hash()] = text
	return s
}

// prelude is its functions, a piece of text each, in their order.
var prelude = strings.Split("\n"+withoutComments(source("prelude")), functionBegins)[1:]

const functionBegins = "\nlocal function "

// withPrelude returns a script behind those functions of the prelude that it calls, also by others of them: a server
// makes each again for each run.
func withPrelude(text string) string {
	text = withoutComments(text)
	for _, f := range slices.Backward(prelude) {
		if name, _, _ := strings.Cut(f, "("); strings.Contains(text, name+"(") {
			text = functionBegins[1:] + f + "\n" + text
		}
	}
	return text
}

// withoutComments leaves out empty lines, and those that only say something: a server has no use for them.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if bare := strings.TrimSpace(line); bare != "" && !strings.HasPrefix(bare, "--") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// source returns a file that is part of the binary: a missing one can't happen past the first start.
func source(name string) string {
	b, err := sources.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return string(b)
}

// The scripts; each file says what it takes and returns.
var (
	claimScript     = script("claim")
	settleScript    = script("settle")
	beginScript     = script("begin")
	anewScript      = script("anew")
	endingScript    = script("ending")
	loseScript      = script("lose")
	balkedScript    = script("balked")
	flushedScript   = script("flushed")
	endScript       = script("end")
	handoverScript  = script("handover")
	positionsScript = script("positions")
	cardScript      = script("card")
	lookupScript    = script("lookup")
	laneScript      = script("lane")
	closeScript     = script("close")
	cancelScript    = script("cancel")
	uncancelScript  = script("uncancel")
	orphanScript    = script("orphan")
	dueScript       = script("due")
	finishedScript  = script("finished")
	reassertScript  = script("reassert")
	wholeScript     = script("whole")
	madeWholeScript = script("made_whole")
	searchedScript  = script("searched")
	gatherScript    = script("gather")
	gatheredScript  = script("gathered")
	lostScript      = script("lost")
	renewScript     = script("renew")
	leaseAgeScript  = script("lease_age")
	releaseScript   = script("release")
	indexAddScript  = script("index_add")
	indexDelScript  = script("index_del")
	indexDueScript  = script("index_due")
	memberScript    = script("member")
	leavingScript   = script("leaving")
	unmemberScript  = script("unmember")
	createScript    = script("space_create")
	joinScript      = script("space_join")
	leaveScript     = script("space_leave")
	announcedScript = script("space_announced")
	probeScript     = script("probe")

	callOpenScript     = script("call_open")
	callAskScript      = script("call_ask")
	callHoldScript     = script("call_hold")
	callLeaveScript    = script("call_leave")
	callStreamedScript = script("call_streamed")
	callListScript     = script("call_list")
	callUnlistScript   = script("call_unlist")
	executeScript      = script("execute")
	spendScript        = script("spend")
	listScript         = script("list")
	changedScript      = script("changed")
	soonestScript      = script("index_soonest")
	registerScript     = script("register")
	lapsedScript       = script("lapsed")
	withdrawScript     = script("withdraw")

	addressTakeScript = script("address_take")
	addressFreeScript = script("address_free")
	addressKeepScript = script("address_keep")
	dialByScript      = script("dial_by")

	endpointTakeScript = script("endpoint_take")
	endpointSetScript  = script("endpoint_set")
	offerScript        = script("offer")
	indexNewScript     = script("index_new")
	indexKeepScript    = script("index_keep")

	linksScript    = script("links")
	linkMakeScript = script("link_make")
	linkEndScript  = script("link_end")
	linkHoldScript = script("link_hold")

	cardCountScript   = script("card_count")
	cardEntriesScript = script("card_entries")
	cardSaidScript    = script("card_said")
	cardSetScript     = script("card_set")

	keptPutScript  = script("kept_put")
	keptListScript = script("kept_list")
)

// batch is how many calls go into one pipeline.
const batch = 250

// call is one run of a script.
type call struct {
	script *redis.Script
	keys   []string
	args   []any
}

// run runs one script and returns its answer.
func (b *backend) run(ctx context.Context, c call) (reply, error) {
	v, err := c.script.Run(ctx, b.rdb, c.keys, c.args...).Result()
	return reply{v}, unavailable(err)
}

// runAll runs the calls in pipelines and returns their answers, in order. It
// fails with the first call that failed; those after it may have run.
func (b *backend) runAll(ctx context.Context, calls []call) ([]reply, error) {
	out := make([]reply, 0, len(calls))
	for len(calls) > 0 {
		n := min(len(calls), batch)
		replies, err := b.pipeline(ctx, calls[:n])
		if err != nil {
			return nil, err
		}
		out, calls = append(out, replies...), calls[n:]
	}
	return out, nil
}

// pipeline runs calls by their digests, and those that the server has no script for (it was restarted) once
// more with their source.
func (b *backend) pipeline(ctx context.Context, calls []call) ([]reply, error) {
	if len(calls) == 1 {
		r, err := b.run(ctx, calls[0])
		return []reply{r}, err
	}
	replies := make([]reply, len(calls))
	var missing []int
	cmds := b.exec(ctx, len(calls), func(p redis.Pipeliner, i int) *redis.Cmd {
		return p.EvalSha(ctx, calls[i].script.Hash(), calls[i].keys, calls[i].args...)
	})
	for i, cmd := range cmds {
		v, err := cmd.Result()
		switch {
		case errors.Is(err, redis.ErrNoScript) || redis.HasErrorPrefix(err, "NOSCRIPT"):
			missing = append(missing, i)
		case err != nil:
			return nil, unavailable(err)
		}
		replies[i] = reply{v}
	}
	if len(missing) == 0 {
		return replies, nil
	}
	cmds = b.exec(ctx, len(missing), func(p redis.Pipeliner, k int) *redis.Cmd {
		c := calls[missing[k]]
		return c.script.Eval(ctx, p, c.keys, c.args...)
	})
	for k, cmd := range cmds {
		v, err := cmd.Result()
		if err != nil {
			return nil, unavailable(err)
		}
		replies[missing[k]] = reply{v}
	}
	return replies, nil
}

// errUnanswered is the error of a command that was never sent, though nothing else failed.
var errUnanswered = errors.New("no answer")

// exec sends n commands in one pipeline; each has its own error then. Where Redis refuses the connection itself (by a
// wrong password, or as it still loads its data), go-redis tells that to Exec alone, and leaves the commands without
// error: their empty answers would say that everything is gone.
func (b *backend) exec(ctx context.Context, n int, add func(redis.Pipeliner, int) *redis.Cmd) []*redis.Cmd {
	p := b.rdb.Pipeline()
	cmds := make([]*redis.Cmd, n)
	for i := range n {
		cmds[i] = add(p, i)
	}
	_, err := p.Exec(ctx)
	for _, cmd := range cmds {
		if cmd.Err() == nil && cmd.Val() == nil { // a script that answers nothing has the error redis.Nil
			cmd.SetErr(cmp.Or(err, errUnanswered))
		}
	}
	return cmds
}

// reply is a script's answer: what is missing in it, or of another type, reads as zero.
type reply struct{ v any }

func (r reply) list() []reply {
	vs, _ := r.v.([]any)
	out := make([]reply, len(vs))
	for i, v := range vs {
		out[i] = reply{v}
	}
	return out
}

func (r reply) at(i int) reply {
	if vs, ok := r.v.([]any); ok && i < len(vs) {
		return reply{vs[i]}
	}
	return reply{}
}

func (r reply) str() string {
	switch v := r.v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

func (r reply) uint() uint64 {
	n, _ := strconv.ParseUint(r.str(), 10, 64)
	return n
}

func (r reply) int() int64 {
	n, _ := strconv.ParseInt(r.str(), 10, 64)
	return n
}

func (r reply) yes() bool { return r.str() == "1" }

// pairs yields the keys and values of a list that holds them by turns.
func (r reply) pairs(yield func(k, v string) bool) {
	l := r.list()
	for i := 0; i+1 < len(l); i += 2 {
		if !yield(l[i].str(), l[i+1].str()) {
			return
		}
	}
}
