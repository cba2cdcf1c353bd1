package chaos

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"time"

	"google.golang.org/grpc"
)

var silentLog = log.New(io.Discard, "", 0) // cut connections are meant

// client makes calls of all kinds, one after the other.
type client struct {
	name   string
	draw   *rand.Rand
	ledger *ledger
	number int

	webs    []*http.Client
	url     string // of the first HTTP server's proxy
	conns   []grpc.ClientConnInterface
	workers []*member    // for Do
	plain   *http.Client // what the functions of Do call with
}

// run makes calls until ctx ends.
func (c *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		switch c.draw.IntN(5) {
		case 0, 1:
			c.httpCall()
		case 2, 3:
			c.grpcCall()
		default:
			c.doCall()
		}
		_ = wait(ctx, time.Duration(c.draw.IntN(5))*time.Millisecond)
	}
}

// order draws an order under an id of its own.
func (c *client) order(prefix string) order {
	c.number++
	o := order{id: fmt.Sprint(prefix, c.name, "-", c.number), pieces: c.draw.IntN(6)}
	switch c.draw.IntN(40) {
	case 0:
		o.pieces = 200
	case 1:
		o.pause = time.Duration(c.draw.IntN(1500)) * time.Millisecond
	default:
		o.pause = time.Duration(c.draw.IntN(10)) * time.Millisecond
	}
	return o
}

// keptOrder draws one of those that are the same for all.
func (c *client) keptOrder() (o order, n int) {
	n = c.draw.IntN(5)
	return order{id: fmt.Sprint(kept, n), pieces: 1 + n}, n
}

// patience returns the context of a call: it has a deadline, soon or late, and may
// be cancelled before that.
func (c *client) patience() (context.Context, context.CancelFunc) {
	left := 4 * time.Second
	if c.draw.IntN(8) == 0 {
		left = time.Duration(1+c.draw.IntN(200)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), left)
	if c.draw.IntN(8) == 0 {
		time.AfterFunc(time.Duration(c.draw.IntN(100))*time.Millisecond, cancel)
	}
	return ctx, cancel
}
