package presence

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

const awaitPause = 200 * time.Millisecond

// Await returns when the server answers and lets this edge do all that it must, which it tries. It fails with a
// sentence that says what to do: at once when no waiting would mend it (a
// password or a right is missing, the address is that of another kind of server), else when ctx is over.
func (s *Store) Await(ctx context.Context) error {
	var last error
	var reminder pause.Reminder
	for {
		_, err := s.run(ctx, call{probeScript, []string{probeKey}, nil})
		if err == nil {
			var refused []string
			if refused, err = refusedRights(ctx, s.rdb); len(refused) > 0 {
				return fmt.Errorf("the user of redis.user may not run %s, as an edge must: give it all rights of docs/security.md", strings.Join(refused, ", "))
			}
		}
		if err == nil {
			return nil
		}
		err = causeOf(err)
		if advice := turnedAway(err); advice != "" {
			return errors.New(advice)
		}
		if ctx.Err() == nil || last == nil { // else it was this call that gave up
			last = err
		}
		if reminder.Due() {
			s.log.Warn("still waiting for Redis", "err", last)
		}
		if !pause.For(ctx, awaitPause) {
			return fmt.Errorf("no Redis answers: start it, or give its address as redis.url: %w", last)
		}
	}
}

// causeOf returns what the client said.
func causeOf(err error) error {
	if e, ok := errors.AsType[*agora.Error](err); ok && e.Cause != nil {
		return e.Cause
	}
	return err
}

// turnedAway says what to do about an answer that no waiting mends; nothing about any other.
func turnedAway(err error) string {
	for _, a := range []struct{ answer, advice string }{
		{"NOAUTH", "Redis asks for a password: give redis.password (with redis.sentinel.password for the sentinels' own), and redis.user if it is not the default one's"},
		{"WRONGPASS", "Redis refuses the user name or password: correct redis.user and redis.password, or redis.sentinel.password"},
		{"invalid username-password pair", "Redis refuses the user name or password: correct redis.user and redis.password, or redis.sentinel.password"},
		{"without any password configured", "Redis knows no password: leave redis.password (or redis.sentinel.password) away, or set one there"},
		{"NOPERM", "the user of redis.user may not do what an edge must: give it the rights of docs/security.md"},
		{"DENIED", "Redis is in protected mode: set a password there, or bind it to the address that edges use"},
		{"cluster support disabled", "the Redis at redis.url is no Redis Cluster: begin its address with redis://"},
		{"MOVED", "the Redis at redis.url is part of a Redis Cluster: begin its address with redis-cluster://"},
		{"READONLY", "the Redis at redis.url is a replica: give the address of the master, or of its sentinels with redis-sentinel://"},
		{"unknown command", "the server at redis.url does not run scripts: if it is a sentinel, begin its address with redis-sentinel://"},
		{"redis: nil", "the sentinels don't know that master: correct master_name in redis.url"},
	} {
		if strings.Contains(err.Error(), a.answer) {
			return a.advice + " (" + oneLine(err) + ")"
		}
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Sprintf("the certificate of Redis can't be trusted: give the CA that signed it as redis.tls.ca, and an address that it is made for (%v)", e.Err)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "Redis does not speak TLS at that port: begin redis.url with redis, not rediss, or give the port that does"
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "remote error" {
		return fmt.Sprintf("Redis does not take this edge's certificate: give one that it trusts as redis.tls.cert and redis.tls.key (%v)", e.Err)
	}
	if e, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Sprintf("the certificate of Redis can't be trusted: give the CA that signed it as redis.tls.ca (%v)", e)
	}
	return ""
}

// oneLine returns what err says, on one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
