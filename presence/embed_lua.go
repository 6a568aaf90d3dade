package presence

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// interpreter runs the scripts of this package for an embedded server, in its place: that makes an interpreter with all
// its libraries again for each run, which takes ten times as long as the script. What a script does is asked of the
// server, whose lock is held meanwhile, so that nothing comes between. Any other script is the server's own affair.
type interpreter struct {
	mini   *miniredis.Miniredis
	nested any // tells the server that a command comes from a script, and its lock is held

	// The rest is guarded by the server's lock.
	state     *lua.LState
	functions map[string]*lua.LFunction // by digest, those that have run before
	answer    bytes.Buffer              // of the command that a script calls
	peer      *server.Peer              // who gets it
	reader    *bufio.Reader             // of it
}

// interpret has the scripts of this package run in an interpreter that is kept.
func interpret(m *miniredis.Miniredis) error {
	i := &interpreter{mini: m, state: lua.NewState(), functions: map[string]*lua.LFunction{}}
	out := bufio.NewWriter(&i.answer)
	i.peer, i.reader = server.NewPeer(out), bufio.NewReader(&i.answer)
	m.Server().SetPreHook(func(c *server.Peer, _ string, _ ...string) bool {
		i.nested = c.Ctx // of the last command: the one that the script calls
		return false
	})
	m.Server().Dispatch(i.peer, []string{"EVAL", "return redis.call('EXISTS', 'nothing')", "0"})
	i.peer.Flush()
	i.answer.Reset()
	if i.nested == nil || i.nested == i.peer.Ctx {
		return errors.New("the embedded presence server does not tell commands of scripts from others")
	}
	i.peer.Ctx = i.nested
	lib := i.state.NewTable()
	lib.RawSetString("call", i.state.NewFunction(i.call))
	i.state.SetGlobal("redis", lib)
	m.Server().SetPreHook(i.hook)
	return nil
}

// protos are the scripts that were compiled, by digest: interpreters of a process share them.
var protos sync.Map

// compiled returns a script compiled.
func compiled(digest, text string) (*lua.FunctionProto, error) {
	if p, ok := protos.Load(digest); ok {
		return p.(*lua.FunctionProto), nil
	}
	chunk, err := parse.Parse(strings.NewReader(text), "<string>")
	if err != nil {
		return nil, err
	}
	p, err := lua.Compile(chunk, "<string>")
	if err != nil {
		return nil, err
	}
	p.IsVarArg &^= lua.VarArgNeedsArg // no script uses arg, a table that is made for each run
	protos.Store(digest, p)
	return p, nil
}

// hook takes the place of EVALSHA, where it knows the script.
func (i *interpreter) hook(c *server.Peer, cmd string, args ...string) bool {
	if cmd != "EVALSHA" || len(args) < 2 {
		return false
	}
	text, ok := known[args[0]]
	if !ok {
		return false
	}
	i.mini.Lock()
	defer i.mini.Unlock()
	v, err := i.run(args[0], text, args[1:])
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		c.WriteError("ERR " + first)
		return true
	}
	write(c, v)
	return true
}

// run runs a script with what stands behind its digest: how many keys there are, the keys, and the rest.
func (i *interpreter) run(digest, text string, args []string) (lua.LValue, error) {
	n, err := strconv.Atoi(args[0])
	if args = args[1:]; err != nil || n < 0 || n > len(args) {
		return nil, errors.New("number of keys is none, or more than there are")
	}
	l := i.state
	f := i.functions[digest]
	if f == nil {
		proto, err := compiled(digest, text)
		if err != nil {
			return nil, err
		}
		f = l.NewFunctionFromProto(proto)
		i.functions[digest] = f
	}
	l.SetGlobal("KEYS", texts(l, args[:n]))
	l.SetGlobal("ARGV", texts(l, args[n:]))
	l.Push(f)
	if err := l.PCall(0, 1, nil); err != nil {
		return nil, err
	}
	v := l.Get(-1)
	l.Pop(1)
	return v, nil
}

// call is redis.call.
func (i *interpreter) call(l *lua.LState) int {
	if l.GetTop() == 1 && l.CheckString(1) == "TIME" { // which many ask for
		l.Push(clock(l, time.Now()))
		return 1
	}
	args := make([]string, l.GetTop())
	for k := range args {
		args[k] = l.CheckString(k + 1)
	}
	i.answer.Reset()
	i.mini.Server().Dispatch(i.peer, args)
	i.peer.Flush()
	i.reader.Reset(&i.answer)
	v, err := server.ParseReply(i.reader)
	if err != nil {
		l.RaiseError("%s", err.Error())
	}
	l.Push(read(l, v))
	return 1
}

// clock is what TIME answers: seconds, and what of another has gone by in microseconds.
func clock(l *lua.LState, now time.Time) *lua.LTable {
	us := now.UnixMicro()
	return texts(l, []string{strconv.FormatInt(us/1e6, 10), strconv.FormatInt(us%1e6, 10)})
}

func texts(l *lua.LState, all []string) *lua.LTable {
	t := l.CreateTable(len(all), 0)
	for _, s := range all {
		t.Append(lua.LString(s))
	}
	return t
}

// read returns a command's answer as scripts see it: nothing is false.
func read(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case int:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case server.Simple:
		t := l.CreateTable(0, 1)
		t.RawSetString("ok", lua.LString(v))
		return t
	case []any:
		t := l.CreateTable(len(v), 0)
		for _, e := range v {
			t.Append(read(l, e))
		}
		return t
	}
	return lua.LFalse
}

// write answers with what a script returned: a list ends at its first nothing, false is nothing.
func write(c *server.Peer, v lua.LValue) {
	switch v := v.(type) {
	case lua.LNumber:
		c.WriteInt(int(v))
	case lua.LString:
		c.WriteBulk(string(v))
	case *lua.LTable:
		n := 0
		for v.RawGetInt(n+1) != lua.LNil {
			n++
		}
		c.WriteLen(n)
		for k := range n {
			write(c, v.RawGetInt(k+1))
		}
	default:
		if v == lua.LTrue {
			c.WriteInt(1)
			return
		}
		c.WriteNull()
	}
}
