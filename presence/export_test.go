package presence

import (
	"context"
	"io/fs"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
)

// SetAnswerTime sets how long a server may take for an answer, for the whole process, until the test ends.
func SetAnswerTime(t testing.TB, d time.Duration) {
	was := answerTime
	answerTime = d
	t.Cleanup(func() { answerTime = was })
}

// SetSettled makes stale members of indexes old sooner than a test would wait.
func SetSettled(s *Store, d time.Duration) { s.settled = d }

// Sources returns the names of the scripts' files.
func Sources() ([]string, error) { return fs.Glob(sources, "lua/*.lua") }

// The indexes, for tests that look whether they are kept small.
func ClaimsKey(h Holder) string      { return claimsKey(h) }
func AgentsKey(tenant string) string { return agentsKey(tenant) }

// AddressesKey is the hash of the addresses that agents of a tenant have.
func AddressesKey(tenant string) string { return addressesKey(tenant) }

// RecordKey is the key of an agent's record.
func RecordKey(tenant string, id agora.AgentID) string { return recordOf(member(tenant, id)) }

// Age makes a mark one behind which nothing has changed for long.
func Age(m *Mark) { m.moved = 0 }

const (
	EdgesKey = edgesKey
	DueKey   = dueKey
	WholeKey = wholeKey
)

// RenewAs is Renew whose request has a word of the test's: the same word is the same request.
func RenewAs(ctx context.Context, s *Store, h Holder, word string) (bool, error) {
	r, err := s.run(ctx, s.Leases.renew(h, "", word, false))
	return r.at(0).yes(), err
}

// Marks returns the keys that say that the server is whole.
func Marks(s *Store) []string { return s.marks() }

// Digest is what a server knows a script by.
func Digest(name string) string { return redis.NewScript(withPrelude(source(name))).Hash() }

// Text is what a server is sent of a script, and Source its file.
func Text(name string) string   { return withPrelude(source(name)) }
func Source(name string) string { return source(name) }

// Answered reports whether parts of an answer, one after the other, are taken for what was wanted.
func Answered(want string, parts ...string) bool {
	q := question{want: []byte(want)}
	for _, p := range parts {
		q.Write([]byte(p))
	}
	return q.answered()
}

// CardSums returns the sums of the account of cards.
func CardSums(ctx context.Context, s *Store) (map[string]string, error) {
	return s.rdb.HGetAll(ctx, cardKeys[1]).Result()
}

// CardEntries returns the entries of the account of cards, by their names.
func CardEntries(ctx context.Context, s *Store) (map[string]string, error) {
	return s.rdb.HGetAll(ctx, cardKeys[0]).Result()
}

// CompareCards has every entry of the account of cards be as its record bears it out, as sweeps do in the course of
// time.
func CompareCards(ctx context.Context, s *Store) error {
	fields, err := s.rdb.HKeys(ctx, cardKeys[0]).Result()
	cards{s.backend}.compare(ctx, fields...)
	return err
}

// CardDue is the index of the entries that are to be compared.
var CardDue = cardKeys[2]

// CardField names the entry of a registration, or of a session.
func CardField(registration bool, tenant string, id agora.AgentID, principal string) string {
	kind := ofSession
	if registration {
		kind = ofRegistration
	}
	return cardField(kind, member(tenant, id), principal)
}

// Trials returns the commands that are tried at the start.
func Trials() (names []string) {
	for _, trial := range trials {
		names = append(names, trial[0].(string))
	}
	return names
}
