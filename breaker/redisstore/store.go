package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/breaker"
)

// Store is a [breaker.Store] and a [breaker.Watcher] on Redis or Valkey. It may
// be used by many fleets at once.
type Store struct {
	client redis.UniversalClient
	prefix string
}

// Options configures a [Store]. The zero Options are fine.
type Options struct {
	// Prefix begins the names of all keys, behind the brace of the hash tag.
	// Zero is "holdfast".
	Prefix string
}

const defaultPrefix = "holdfast"

// New returns a store that uses client. It sends nothing: whether the server
// answers shows later, in the fleet's figures.
//
// It returns an error if client is nil, or is one of go-redis's that ignores the
// deadlines of its contexts: set ContextTimeoutEnabled in its options.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	if v := reflect.ValueOf(client); client == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("redisstore: client is nil")
	}
	heeds := true
	switch c := client.(type) {
	case *redis.Client:
		heeds = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		heeds = c.Options().ContextTimeoutEnabled
	case *redis.Ring:
		heeds = c.Options().ContextTimeoutEnabled
	}
	if !heeds {
		return nil, errors.New("redisstore: client: ContextTimeoutEnabled must be set, or commands outlast their time when the server hangs")
	}
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	return &Store{client, o.Prefix}, nil
}

// page is how many records one command returns.
const page = 500

// Changes is that of [breaker.Store].
func (s *Store) Changes(ctx context.Context, space string, after breaker.Mark) (ch breaker.Changes, err error) {
	reply, err := changes.Run(ctx, s.client, s.keys(space), after.Epoch, after.Revision, page).Slice()
	if err != nil {
		return ch, fmt.Errorf("redisstore: %w", err)
	}
	r := reader{words: reply}
	now := r.time()
	ch.Mark = breaker.Mark{Epoch: r.uint(), Revision: r.uint()}
	ch.Whole, ch.More = r.uint() == 1, r.uint() == 1
	for r.err == nil && len(r.words) > 0 {
		key, line := r.text(), r.text()
		rec, err := parse(key, line, ch.Epoch, now)
		if err != nil {
			return breaker.Changes{}, err
		}
		ch.Records = append(ch.Records, rec)
	}
	if r.err != nil {
		return breaker.Changes{}, r.err
	}
	return ch, nil
}

// Open is that of [breaker.Store].
func (s *Store) Open(ctx context.Context, space, key string, o breaker.Opening) (breaker.Record, error) {
	return s.change(ctx, open, space, key, o)
}

// Probe is that of [breaker.Store].
func (s *Store) Probe(ctx context.Context, space, key string, c breaker.Claim) (breaker.Record, error) {
	return s.change(ctx, probe, space, key, c.Opening, claim(c)...)
}

func claim(c breaker.Claim) []any {
	return []any{escape(c.Token), c.Generation, micros(c.Lease), c.Shared}
}

// Settle is that of [breaker.Store].
func (s *Store) Settle(ctx context.Context, space, key string, e breaker.Settlement) (breaker.Record, error) {
	outcome, to := 2, "half"
	switch e.Outcome {
	case breaker.ProbeNeutral:
		outcome = 0
	case breaker.ProbeSucceeded:
		outcome = 1
	}
	switch e.To {
	case breaker.Closed:
		to = "closed"
	case breaker.Open:
		to = "open"
	}
	return s.change(ctx, settle, space, key, e.Opening, append(claim(e.Claim), e.Locked, outcome, to)...)
}

// Force is that of [breaker.Store].
func (s *Store) Force(ctx context.Context, space, key string, o breaker.Order) (breaker.Record, error) {
	what, ok := actions[o.Do]
	if !ok {
		return breaker.Record{}, fmt.Errorf("redisstore: Order.Do = %d: is no action", o.Do)
	}
	return s.change(ctx, force, space, key, o.Opening, what, escape(o.Note), o.Was)
}

var actions = map[breaker.Action]string{
	breaker.ForceNow: "now", breaker.ForceKept: "kept", breaker.ForceAgain: "again", breaker.ForceOver: "over",
}

// change runs a script that changes the record of a key.
func (s *Store) change(
	ctx context.Context, script *redis.Script, space, key string, o breaker.Opening, more ...any,
) (breaker.Record, error) {
	args := append([]any{
		key, rand.Uint64N(1<<52) + 1, s.channel(space), o.Known, micros(o.Keep),
		escape(o.Worker), int(o.Reason), o.Nth, micros(o.Cooldown), micros(o.Left), o.Quorum,
	}, more...)
	reply, err := script.Run(ctx, s.client, s.keys(space), args...).Slice()
	if err != nil {
		return breaker.Record{}, fmt.Errorf("redisstore: %w", err)
	}
	r := reader{words: reply}
	now, epoch, line := r.time(), r.uint(), r.text()
	if r.err != nil {
		return breaker.Record{}, r.err
	}
	if line == "" {
		return breaker.Record{Key: key}, nil
	}
	return parse(key, line, epoch, now)
}

// keys returns the names of a space's keys: the records and the changes. The
// hash tag comes first and ends with the first closing brace, so that no brace
// in what follows takes its place in a cluster.
func (s *Store) keys(space string) []string {
	return []string{s.tag(space) + ":v1:records", s.tag(space) + ":v1:changes"}
}

func (s *Store) channel(space string) string { return s.tag(space) + ":v1:told" }

func (s *Store) tag(space string) string {
	return "{" + braces.Replace(s.prefix) + ":" + braces.Replace(space) + "}"
}

var braces = strings.NewReplacer("{", "%7B", "}", "%7D", "%", "%25")

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }
