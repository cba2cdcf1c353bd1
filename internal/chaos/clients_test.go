package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

var silentLog = log.New(io.Discard, "", 0) // cut connections are meant

// client makes calls of all kinds, one after the other.
type client struct {
	name   string
	draw   *rand.Rand
	ledger *ledger
	number int

	http []*http.Client
	url  string
	grpc []*grpc.ClientConn
}

// once begins the id of an order that may be carried out once at most.
const once = "once-"

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

// judge holds the error of a call against the table of errors in the README, and
// returns what it is.
func (c *client) judge(kind string, o order, ctx context.Context, err error) string {
	fault := func(format string, args ...any) {
		c.ledger.fault("%s %s: %s: %v", kind, o, fmt.Sprintf(format, args...), err)
	}
	unsent := func(name string) string {
		if n := c.ledger.timesDone(o.id); n != 0 {
			fault("%s, but it was carried out %d times", name, n)
		}
		return name
	}
	var stopped *retry.StoppedError
	switch {
	case errors.As(err, &stopped):
		for name, reason := range map[string]error{
			"open": breaker.ErrOpen, "full": bulkhead.ErrFull, "budget": retry.ErrBudget, "no time": retry.ErrNoTime, "Retry-After": retry.ErrRetryAfter,
		} {
			if errors.Is(stopped.Reason, reason) {
				if stopped.Last == nil || stopped.Attempts < 1 {
					fault("stopped without a failure")
				}
				return "stopped: " + name
			}
		}
		fault("stopped for no known reason")
		return "stopped"
	case errors.Is(err, breaker.ErrOpen):
		return unsent("open")
	case errors.Is(err, bulkhead.ErrFull):
		return unsent("full")
	case errors.Is(err, timeout.ErrFloor):
		return unsent("floor")
	case errors.Is(err, timeout.ErrExceeded):
		var has interface{ Timeout() bool }
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &has) || !has.Timeout() {
			fault("a limit that does not say it is one")
		}
		return "limit"
	case errors.Is(err, context.Canceled):
		if ctx.Err() == nil {
			fault("nobody has cancelled")
		}
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		if deadline, _ := ctx.Deadline(); time.Now().Before(deadline) {
			fault("the deadline has not passed")
		}
		return "deadline"
	}
	if text := err.Error(); strings.Contains(text, "panic") || strings.Contains(text, "httpmw:") {
		fault("an error of the kit's that the table does not have")
	}
	return "failed"
}

func (c *client) httpCall() {
	method := pick(c.draw, http.MethodGet, http.MethodGet, http.MethodPut, http.MethodPost)
	prefix := ""
	if method == http.MethodPost {
		prefix = once
	}
	o := c.order(prefix)
	o.code = pick(c.draw, 200, 200, 200, 200, 200, 200, 200, 503, 500, 429, 404)
	ctx, cancel := c.patience()
	defer cancel()
	var body io.Reader
	if method != http.MethodGet {
		if body = strings.NewReader(o.whole()); c.draw.IntN(2) == 0 {
			body = io.MultiReader(body) // without GetBody, and of unknown length
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url, body)
	if err != nil {
		panic(err)
	}
	req.Header.Set("X-Order", o.String())
	kind := "HTTP " + method
	resp, err := pick(c.draw, c.http...).Do(req)
	if err != nil {
		var outer *url.Error
		if !errors.As(err, &outer) {
			c.ledger.fault("%s %s: no *url.Error: %v", kind, o, err)
		}
		c.ledger.outcome(kind, c.judge(kind, o, ctx, err))
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != o.code {
		c.ledger.fault("%s %s: status %d", kind, o, resp.StatusCode)
	}
	want := o.whole()
	if o.code != 200 {
		want = "as ordered"
	}
	switch c.draw.IntN(10) {
	case 0:
		c.ledger.outcome(kind, "unread")
		return
	case 1:
		cancel()
		_, _ = io.Copy(io.Discard, resp.Body)
		c.ledger.outcome(kind, "left")
		return
	}
	got, err := io.ReadAll(resp.Body)
	switch {
	case !bytes.HasPrefix([]byte(want), got):
		c.ledger.fault("%s %s: %d bytes of another answer", kind, o, len(got))
	case err != nil:
		c.ledger.outcome(kind, "body: "+c.judge(kind, o, ctx, err))
	case len(got) != len(want):
		c.ledger.fault("%s %s: %d of %d bytes, and no error", kind, o, len(got), len(want))
	default:
		c.ledger.outcome(kind, strconv.Itoa(o.code))
	}
}

const service = "/chaos.Store/"

func (c *client) grpcCall() {
	name := pick(c.draw, "Read", "Read", "Put", "Add", "Feed", "Feed", "Upload", "Chat")
	prefix := ""
	if name != "Read" && name != "Put" && name != "Feed" {
		prefix = once
	}
	o := c.order(prefix)
	o.code = int(pick(c.draw, codes.OK, codes.OK, codes.OK, codes.OK, codes.OK, codes.OK, codes.OK,
		codes.Unavailable, codes.Internal, codes.ResourceExhausted, codes.NotFound))
	if name == "Read" || name == "Put" || name == "Add" {
		o.pieces = 1
	}
	ctx, cancel := c.patience()
	defer cancel()
	cc, opts := pick(c.draw, c.grpc...), []grpc.CallOption(nil)
	if c.draw.IntN(4) == 0 {
		opts = append(opts, grpc.WaitForReady(true))
	}
	var got []string
	var err error
	switch name {
	case "Read", "Put", "Add":
		reply := new(wrapperspb.StringValue)
		if err = cc.Invoke(ctx, service+name, wrapperspb.String(o.String()), reply, opts...); err == nil {
			got = []string{reply.GetValue()}
		}
	default:
		got, err = c.stream(ctx, cc, name, o, opts)
	}
	kind := "gRPC " + name
	if errors.Is(err, errLeft) {
		c.ledger.outcome(kind, "left")
		return
	}
	for n, text := range got {
		if want := o.piece(n); text != want && name != "Upload" {
			c.ledger.fault("%s %s: message %d is %.20q", kind, o, n, text)
		}
	}
	switch {
	case err != nil:
		c.ledger.outcome(kind, c.status(kind, o, ctx, err))
	case o.code != 0:
		c.ledger.fault("%s %s: OK", kind, o)
	case name == "Upload" && (len(got) != 1 || got[0] != strconv.Itoa(o.pieces)):
		c.ledger.fault("%s %s: %q messages arrived", kind, o, got)
	case name != "Upload" && len(got) != o.pieces:
		c.ledger.fault("%s %s: %d messages, and no error", kind, o, len(got))
	default:
		c.ledger.outcome(kind, "OK")
	}
}

// status judges the error of an RPC by its code as well.
func (c *client) status(kind string, o order, ctx context.Context, err error) string {
	st, ok := status.FromError(err)
	if !ok {
		c.ledger.fault("%s %s: an error without a status: %v", kind, o, err)
	}
	name, code := c.judge(kind, o, ctx, err), st.Code()
	want := map[string]codes.Code{
		"open": codes.Unavailable, "full": codes.ResourceExhausted, "floor": codes.DeadlineExceeded,
		"limit": codes.DeadlineExceeded, "canceled": codes.Canceled, "deadline": codes.DeadlineExceeded,
	}
	if w, ok := want[name]; ok && code != w {
		c.ledger.fault("%s %s: %s with code %v: %v", kind, o, name, code, err)
	}
	if name != "failed" {
		return name
	}
	switch code {
	case codes.Code(o.code), codes.Unavailable, codes.Internal, codes.Unknown:
	case codes.Canceled:
		if ctx.Err() == nil {
			c.ledger.fault("%s %s: nobody has cancelled: %v", kind, o, err)
		}
	default:
		c.ledger.fault("%s %s: a code nobody ordered: %v", kind, o, err)
	}
	return "failed " + code.String()
}

var errLeft = errors.New("the caller has left")

// stream makes a streaming RPC and returns what it received.
func (c *client) stream(ctx context.Context, cc *grpc.ClientConn, name string, o order, opts []grpc.CallOption) (got []string, err error) {
	desc := &grpc.StreamDesc{ServerStreams: name != "Upload", ClientStreams: name != "Feed"}
	s, err := cc.NewStream(ctx, desc, service+name, opts...)
	if err != nil {
		return nil, err
	}
	leaves := -1
	if c.draw.IntN(10) == 0 {
		leaves = c.draw.IntN(3)
	}
	send := func(text string) error {
		if err := s.SendMsg(wrapperspb.String(text)); err != nil && err != io.EOF {
			return err
		}
		return nil // RecvMsg knows more
	}
	if err := send(o.String()); err != nil {
		return nil, err
	}
	if desc.ClientStreams {
		for n := range o.pieces {
			if err := send(o.piece(n)); err != nil {
				return nil, err
			}
		}
	}
	if err := s.CloseSend(); err != nil {
		return nil, err
	}
	if c.draw.IntN(4) == 0 {
		if _, err := s.Header(); err != nil {
			return nil, err
		}
	}
	for {
		if len(got) == leaves {
			return nil, errLeft // unread; its context is about to end
		}
		m := new(wrapperspb.StringValue)
		switch err := s.RecvMsg(m); {
		case err == io.EOF:
			return got, nil
		case err != nil:
			return got, err
		}
		if got = append(got, m.GetValue()); !desc.ServerStreams {
			return got, nil
		}
	}
}
