package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/wire"
)

// output is what a command writes: the answer to a message that wants one, as it comes, and else text for the one who
// has started the verb.
type output struct {
	*printer
	ctx    context.Context
	m      *client.Message
	stream *client.Stream // nil before the first byte
}

// asked reports whether the message wants an answer.
func (o *output) asked() bool { return !o.m.IsReply && o.m.RequestID() != "" }

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	if !o.asked() {
		return len(b), o.print(string(b))
	}
	if o.stream == nil {
		var err error
		if o.stream, err = o.m.ReplyStream(o.ctx, nil); err != nil {
			return 0, err
		}
	}
	return o.stream.Write(b)
}

// end ends the answer: with the error where there is one. It returns why that could not be said.
func (o *output) end(why error) error {
	switch {
	case !o.asked():
		return nil
	case o.stream == nil && why == nil:
		return o.m.Reply(o.ctx, map[string]string{"text": ""})
	case why == nil:
		return o.stream.Close()
	}
	e, ok := errors.AsType[*agora.Error](why)
	if !ok {
		e = agora.Errorf(agora.StreamAborted, "%s", why.Error())
	}
	said := wire.AppendReplyError(nil, e)
	if o.stream == nil {
		return o.m.Reply(o.ctx, said)
	}
	return o.stream.CloseWith(said)
}

// cancel gives the answer up.
func (o *output) cancel() {
	if o.stream != nil {
		o.stream.Cancel()
	}
}

// failed returns why a command has failed, as a caller may know it: how it is called, and its paths, are nobody's
// business.
func failed(err error) error {
	var e *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e) && e.ExitCode() >= 0:
		return fmt.Errorf("the agent's command ended with status %d", e.ExitCode())
	case errors.As(err, &e):
		return errors.New("the agent's command was killed")
	}
	return &agora.Error{Code: agora.StreamAborted, Message: "the agent's command did not run", Cause: err}
}
