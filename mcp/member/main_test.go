package member_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// serverEnv has this program be a tool server over stdio: how, is its value.
const serverEnv = "AGORA_TEST_TOOL_SERVER"

func TestMain(m *testing.M) {
	if how := os.Getenv(serverEnv); how != "" {
		serve(how)
		return
	}
	goleak.VerifyTestMain(m)
}

// serve is the tool server.
func serve(how string) {
	how, file, _ := strings.Cut(how, "=")
	switch how {
	case "dies":
		fmt.Fprintln(os.Stderr, "no configuration")
		os.Exit(3)
	case "mute":
		select {}
	case "http":
		serveHTTP(file, nil)
	case "http-legacy":
		serveHTTP(file, []string{"2025-11-25"})
	case "old":
		serveOld()
		return
	case "once": // it is there the first time alone
		if _, err := os.Stat(file); err == nil {
			os.Exit(4)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			os.Exit(5)
		}
	case "stays": // it hears neither the end of stdin nor SIGTERM, and has a child
		stay(file)
	}
	if err := newTools().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
	if how == "stays" {
		select {}
	}
}

// serveHTTP serves tools at an address, which it says on stdout.
func serveHTTP(addr string, speak []string) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(8)
	}
	fmt.Println(l.Addr())
	tools := newToolsThat(speak)
	_ = http.Serve(l, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	os.Exit(9)
}

// stay starts a child that lives for long, and writes the ids of both to a file.
func stay(file string) {
	ignoreTerm()
	child := exec.Command("sleep", "3600")
	if err := child.Start(); err != nil {
		os.Exit(6)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, "%d %d", os.Getpid(), child.Process.Pid), 0o600); err != nil {
		os.Exit(7)
	}
}

// serveOld is a server of the legacy protocol by hand, which ends where the first message is not the handshake. Each of
// its lines has a byte order mark, and two messages.
func serveOld() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if answer := answerByHand(in.Bytes()); answer != "" {
			fmt.Println("\xef\xbb\xbf" + `{"jsonrpc":"2.0","method":"notifications/message"} ` + answer)
		}
	}
}

// byHand are the tools of a server by hand.
const byHand = `{"tools":[{"name":"now","inputSchema":{"type":"object"}},` +
	`{"inputSchema":{"type":"object","title":"<","properties":{"z":{"maximum":18446744073709551615},"a":{"multipleOf":1.10}}},"name":"say"}]}`

// answerByHand is what a server by hand answers to a message: the tool "say" returns the result that it is called with
// as a text, byte for byte.
func answerByHand(message []byte) string {
	var q struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			Arguments struct{ Result string }
		}
	}
	if err := json.Unmarshal(message, &q); err != nil {
		os.Exit(10)
	}
	result := ""
	switch {
	case q.Method == "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`
	case strings.HasPrefix(q.Method, "notifications/"):
		return ""
	case q.Method == "tools/list":
		result = byHand
	case q.Method == "tools/call" && q.Params.Name == "say":
		result = q.Params.Arguments.Result
	case q.Method == "tools/call":
		result = `{"content":[{"type":"text","text":"noon"}]}`
	default:
		os.Exit(1)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result)
}

// newTools returns the server that tests call.
func newTools() *mcp.Server { return newToolsThat(nil) }

// newToolsThat is newTools that speaks some versions of the protocol alone; nil for all.
func newToolsThat(speak []string) *mcp.Server {
	o := &mcp.ServerOptions{Instructions: "Has tools.", PageSize: 2, SupportedProtocolVersions: speak}
	s := mcp.NewServer(&mcp.Implementation{Name: "tool shed", Title: "The shed", Version: "1"}, o)
	addTool(s, "echo", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(string(r.Params.Arguments)), nil
	})
	addTool(s, "sum", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: text(`{"sum": 12345678901234567890, "b": "<"}`).Content, StructuredContent: jsonText(`{"sum":12345678901234567890,"b":"<"}`)}, nil
	})
	addTool(s, "picture", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: []byte("\x89PNG")}}}, nil
	})
	addTool(s, "both", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a"}, &mcp.ImageContent{MIMEType: "image/png", Data: []byte("b")}}}, nil
	})
	addTool(s, "fail", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: text("no such file").Content}, nil
	})
	addTool(s, "refuse", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("out of paper")
	})
	addTool(s, "long", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		n, _ := strconv.Atoi(strings.Trim(string(r.Params.Arguments), `{"n:}`))
		return text(strings.Repeat("0123456é", n/9)), nil
	})
	addTool(s, "pid", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strconv.Itoa(os.Getpid())), nil
	})
	addTool(s, "env", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n")), nil
	})
	addTool(s, "nonsense", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for range 1000 {
			fmt.Println("Listening on port 3000")
			fmt.Println(`{"jsonrpc":"2.0","id":`)
			fmt.Println(`[1,2]`)
		}
		fmt.Println(strings.Repeat("x", 9<<20))
		fmt.Fprintln(os.Stderr, "said on stderr")
		return text("sense"), nil
	})
	addTool(s, "hang", hang)
	addTool(s, "work", work)
	addTool(s, "grow", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		addTool(s, "grown", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("grown"), nil })
		s.RemoveTools("env")
		return text("ok"), nil
	})
	return s
}

func addTool(s *mcp.Server, name string, f mcp.ToolHandler) {
	s.AddTool(&mcp.Tool{Name: name, Description: "does " + name, InputSchema: jsonText(`{"type":"object","properties":{"n":{"type":"number"}}}`)}, f)
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// hang writes to a file that it was called, and, when it was cancelled, that it was.
func hang(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	file := pathIn(r)
	note(file+".begun", "")
	<-ctx.Done()
	note(file+".cancelled", "")
	return nil, ctx.Err()
}

// work tells of its progress until a file is there.
func work(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	tell := func(n float64) error {
		return r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: "sawing", Progress: n, Total: 2})
	}
	for n := range 2 {
		if err := tell(float64(n + 1)); err != nil {
			return nil, err
		}
	}
	for file := pathIn(r); ; {
		if b, err := os.ReadFile(file); err == nil {
			if string(b) == "fail" {
				return &mcp.CallToolResult{IsError: true, Content: text("the saw broke").Content}, nil
			}
			return text("planks" + strings.Repeat(".", 600_000*strings.Count(string(b), "+"))), nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
