package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/timeout"
)

// shop takes orders whether or not the service that carries them out is there.
type shop struct {
	client *http.Client
	url    string
	table  *table
	out    io.Writer
}

func newShop(base http.RoundTripper, url string, t *table, out io.Writer) (*shop, error) {
	kit, err := holdfast.New(holdfast.Config{
		Name: "orders",
		Default: holdfast.Policy{
			Timeout: &timeout.Limits{Total: 2 * time.Second, Attempt: 500 * time.Millisecond},
			Breaker: &breaker.Config{Consecutive: 3, Cooldown: 300 * time.Millisecond, MaxCooldown: 300 * time.Millisecond, ProbeSuccesses: 1},
		},
	})
	if err != nil {
		return nil, err
	}
	transport, err := httpmw.New(base, kit)
	if err != nil {
		return nil, err
	}
	return &shop{&http.Client{Transport: transport}, url, t, out}, nil
}

// take takes an order. It is the shop's from the moment it is in the table, and
// what the customer is told is just that.
func (s *shop) take(order string) error {
	if err := s.table.insert(row{Key: rand.Text(), Order: order}); err != nil {
		return err // not taken, and the customer hears it
	}
	fmt.Fprintf(s.out, "taken:    %s\n", order)
	return nil
}

// sendPending sends what is in the table, oldest first, until one has no answer:
// the rest keeps its order behind it. It returns how many rows are left.
func (s *shop) sendPending(ctx context.Context) (left int, err error) {
	rows := s.table.pending()
	for n, r := range rows {
		answer, err := s.send(ctx, r)
		switch {
		case err == nil:
			if err := s.table.end(r, sent); err != nil {
				return len(rows) - n, err
			}
			fmt.Fprintf(s.out, "sent:     %s", answer)
		case errors.Is(err, errRejected):
			if err := s.table.end(r, rejected); err != nil {
				return len(rows) - n, err
			}
			fmt.Fprintf(s.out, "rejected: %s: %v\n", r.Order, err)
		default:
			fmt.Fprintf(s.out, "kept:     %s, and %d behind it: %s\n", r.Order, len(rows)-n-1, reason(err))
			return len(rows) - n, nil
		}
	}
	return 0, nil
}

// errRejected: the service has answered that it does not want the order.
var errRejected = errors.New("rejected by the service")

// notNow are the statuses of a client's faults that say nothing of the order.
var notNow = []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}

// send sends one row, with its own key whenever and however often it is sent. With
// a key the kit repeats a POST too.
func (s *shop) send(ctx context.Context, r row) (answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/orders", strings.NewReader(r.Order))
	if err != nil {
		return "", err
	}
	req.Header.Set("Idempotency-Key", r.Key)
	resp, err := s.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	switch {
	case err != nil:
		return "", err // cut off: nobody knows what it would have said
	case resp.StatusCode < 300:
		return string(text), nil
	case resp.StatusCode < 500 && !slices.Contains(notNow, resp.StatusCode):
		return "", fmt.Errorf("%w: %s", errRejected, strings.TrimSpace(string(text)))
	}
	return "", fmt.Errorf("the service answers %s", resp.Status)
}

// reason is why a row was kept, in a few words.
func reason(err error) string {
	if write, ok := errors.AsType[*fallback.WriteError](err); ok && !write.Sent {
		return "not sent, " + strings.TrimPrefix(write.Err.Error(), "breaker: ")
	}
	return "it may have arrived, or not: " + err.Error()
}
