package agoratest

import (
	"context"
	"fmt"
	"time"
)

// upgradeTime is how long an agent first tries to connect at one edge, before it goes to the next.
const upgradeTime = 2 * time.Second

// connect comes back to some edge and says where it stands; nil when it could not.
func (k *talker) connect() *Client {
	if wait := time.Until(k.paced); wait > 0 {
		<-time.After(min(wait, 20*time.Millisecond)) // the talk may be over
		return nil
	}
	k.mu.Lock()
	if k.back.tried.IsZero() {
		k.back.tried = time.Now()
	}
	first, hello := k.pos.token == "", k.hello()
	k.mu.Unlock()
	urls := k.talk.urls()
	conn, why := k.register(urls[k.door%len(urls)], hello, first)
	if conn == nil {
		k.door++ // somewhere else, a little later
		k.paced = time.Now().Add(20 * time.Millisecond)
		k.mu.Lock()
		k.back.seen.Codes[why]++
		k.mu.Unlock()
	}
	return conn
}

// hello is how it registers. The caller holds mu.
func (k *talker) hello() string {
	if k.pos.token == "" {
		return fmt.Sprintf(`{"type":"agent.register","agent":{"id":%s}}`, Quote(k.id))
	}
	return fmt.Sprintf(`{"type":"agent.register","agent":{"id":%s},"resume_token":%s,"last_seq":%d,"spaces":{%s:%d}}`,
		Quote(k.id), Quote(k.pos.token), k.pos.last, Quote(k.talk.opts.Name), k.pos.space)
}

// register opens a connection and binds it; otherwise it says why not.
func (k *talker) register(url, hello string, first bool) (conn *Client, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), k.upgrade)
	defer cancel()
	conn, _, err := tryConnect(ctx, k.talk.t, Direct{}, url, "", nil)
	if err != nil {
		if ctx.Err() != nil {
			k.upgrade = min(2*k.upgrade, patience) // where all is slow nobody is dead
		}
		return nil, "no connection"
	}
	k.upgrade = upgradeTime
	if conn.Try(hello) != nil {
		conn.Drop()
		return nil, "no connection"
	}
	w, ok := conn.Next(patience)
	if !ok || w.Type() != "agent.registered" {
		conn.Drop()
		if w.Has("code") {
			return nil, "registering: " + w.Text("code")
		}
		return nil, "registering: no answer"
	}
	k.welcome(conn, w, first)
	return conn, ""
}

func (k *talker) welcome(conn *Client, w Frame, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pos.token = w.Text("resume_token")
	k.bound()
	if first {
		k.pos.last = w.Uint("last_seq")
		// A connection that is gone shows soon.
		_ = conn.Try(fmt.Sprintf(`{"type":"space.join","id":"join","space":%s}`, Quote(k.talk.opts.Name)))
	} else {
		if w.Raw("resumed") != "true" {
			k.fault("lost its session: %s", w)
		}
		k.back.seen.Back = max(k.back.seen.Back, time.Since(k.back.tried))
		k.back.owed, k.back.since = k.stored(), k.back.tried
		k.caughtUp()
	}
	k.back.tried = time.Time{}
	for _, o := range k.out {
		o.next = o.line.Settled() + 1
	}
}
