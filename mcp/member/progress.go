package member

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// progress leads what a server tells of the progress of calls to those.
type progress struct {
	mu    sync.Mutex // guards the fields below
	next  uint64
	heard map[string]chan string // by the tokens of the calls
}

// keptProgress is how much of a call's progress waits to be sent; what comes beyond is left out.
const keptProgress = 16

// maxProgress is how many runes of a message of progress are told.
const maxProgress = 1024

// follow returns a token for a call, what is told under it, a line each, and what ends that.
func (p *progress) follow() (token string, told <-chan string, end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	token = "call-" + strconv.FormatUint(p.next, 10)
	c := make(chan string, keptProgress)
	if p.heard == nil {
		p.heard = map[string]chan string{}
	}
	p.heard[token] = c
	return token, c, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.heard, token)
	}
}

// tell hands the progress to its call. It never blocks.
func (p *progress) tell(n *mcp.ProgressNotificationParams) {
	if n == nil {
		return
	}
	token, _ := n.ProgressToken.(string)
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.heard[token]; c != nil {
		select {
		case c <- progressText(n):
		default:
		}
	}
}

// progressText returns progress as a line: the message, and how far it is.
func progressText(n *mcp.ProgressNotificationParams) string {
	far := strconv.FormatFloat(n.Progress, 'f', -1, 64)
	if n.Total > 0 {
		far += "/" + strconv.FormatFloat(n.Total, 'f', -1, 64)
	}
	text := strings.Join(strings.Fields(cut(n.Message, maxProgress)), " ")
	if text == "" {
		return far + "\n"
	}
	return fmt.Sprintf("%s (%s)\n", text, far)
}
