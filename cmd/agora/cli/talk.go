package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

// maxHeard bounds whom a conversation keeps in mind.
const maxHeard = 1024

// conversation sends the lines that a person types to whom they are meant for: the one who waits for an answer, else
// the one who has written, where there is one alone.
type conversation struct {
	c    *client.Client
	tell func(string)

	mu    sync.Mutex // guards the fields below
	asked []question // those without an answer, in order
	wrote []string   // agents that have written
}

// question is a request, as far as its answer needs it.
type question struct {
	from     string
	id       json.RawMessage // its request_id
	deadline time.Time       // when its sender stops waiting; zero: not known
}

// heard notes a message.
func (t *conversation) heard(m *client.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id := rawRequestID(m); id != nil {
		t.asked = append(t.asked[max(0, len(t.asked)+1-maxHeard):], question{m.From, id, m.Deadline})
	}
	if !slices.Contains(t.wrote, m.From) && len(t.wrote) < maxHeard {
		t.wrote = append(t.wrote, m.From)
	}
}

// rawRequestID returns the request_id of a message that may be answered, as it was written; nil where there is none.
func rawRequestID(m *client.Message) json.RawMessage {
	var members map[string]json.RawMessage
	if id := m.RequestID(); id == "" || len(id) > maxHeard || m.IsReply || json.Unmarshal(m.Payload, &members) != nil {
		return nil
	}
	return slices.Clone(members["request_id"])
}

// speak sends a line, and tells whom it went to, or why to nobody. An error is that of an ended client.
func (t *conversation) speak(ctx context.Context, line string) error {
	to, text, err := t.addressee(line)
	if err != nil {
		t.tell("not sent: " + err.Error())
		return nil
	}
	payload, did, send := map[string]any{"text": text}, "sent to ", t.c.Send
	if q, ok := t.take(to); ok {
		payload["request_id"], did = q.id, "answered "
		send = func(ctx context.Context, to string, payload any) error { return t.c.Reply(ctx, to, "", payload) }
	}
	err = persist(ctx, t.tell, func() error { return send(ctx, to, payload) })
	switch {
	case t.c.Err() != nil || ctx.Err() != nil:
		return cmpErr(t.c.Err(), ctx.Err())
	case err != nil:
		t.tell("not sent: " + exit.Sentence(err))
	default:
		t.tell(did + terminal.NameOf(to))
	}
	return nil
}

// addressee returns whom a line is meant for, and what it says to it.
func (t *conversation) addressee(line string) (to, text string, err error) {
	if rest, ok := strings.CutPrefix(line, "@"); ok {
		return cutName(rest)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune()
	if to, err = t.only(t.waiting(), "wait for an answer"); to != "" || err != nil {
		return to, line, err
	}
	if to, err = t.only(t.wrote, "have written"); to == "" && err == nil {
		err = errors.New("nobody has written yet; @ID TEXT speaks to an agent")
	}
	return to, line, err
}

// cutName cuts the agent's id off the beginning of a line: a word, or a quoted one.
func cutName(line string) (id, text string, err error) {
	if quoted, err := strconv.QuotedPrefix(line); err == nil && line[0] == '"' {
		id, _ = strconv.Unquote(quoted)
		text = line[len(quoted):]
	} else {
		id, text, _ = strings.Cut(line, " ")
	}
	if text = strings.TrimSpace(text); id == "" || text == "" {
		return "", "", errors.New("want @ID TEXT")
	}
	return id, text, nil
}

// waiting returns the agents that wait for an answer. mu is held, as in all that follow.
func (t *conversation) waiting() (ids []string) {
	for _, q := range t.asked {
		if !slices.Contains(ids, q.from) {
			ids = append(ids, q.from)
		}
	}
	return ids
}

// prune forgets requests whose sender waits no more.
func (t *conversation) prune() {
	now := time.Now()
	t.asked = slices.DeleteFunc(t.asked, func(q question) bool { return !q.deadline.IsZero() && q.deadline.Before(now) })
}

// only returns the one of several agents; empty where there is none.
func (t *conversation) only(ids []string, why string) (string, error) {
	if len(ids) > 1 {
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = terminal.NameOf(id)
		}
		return "", fmt.Errorf("several %s (%s); begin the line with @ID", why, strings.Join(names, ", "))
	}
	return strings.Join(ids, ""), nil
}

// take returns the oldest request of an agent, which is about to be answered; false where there is none.
func (t *conversation) take(from string) (q question, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune()
	i := slices.IndexFunc(t.asked, func(q question) bool { return q.from == from })
	if i < 0 {
		return q, false
	}
	q = t.asked[i]
	t.asked = slices.Delete(t.asked, i, i+1)
	return q, true
}

// readLines calls f for each line of stdin that is not empty, until that ends, ctx does, or f returns an error.
func readLines(ctx context.Context, cmd *cobra.Command, s *screen, f func(string) error) error {
	in := cmd.InOrStdin()
	echoed := terminal.Is(in) && terminal.Is(cmd.OutOrStdout())
	if terminal.Is(in) {
		terminal.ReadInForegroundOnly()
	}
	lines := bufio.NewScanner(newSource(ctx, in))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if echoed {
			s.typed()
		}
		if lines.Text() == "" {
			continue
		}
		if err := f(lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}
