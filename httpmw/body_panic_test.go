package httpmw_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
)

// bomb is a body that breaks in Read, after a while, or in Close.
type bomb struct {
	after   time.Duration
	inClose bool
	exits   bool // it ends its goroutine instead
	closes  int
}

func (b *bomb) Read([]byte) (int, error) {
	time.Sleep(b.after)
	if b.inClose {
		return 0, io.EOF
	}
	return 0, b.goOff()
}

func (b *bomb) Close() error {
	b.closes++
	if b.inClose {
		return b.goOff()
	}
	return nil
}

func (b *bomb) goOff() error {
	if b.exits {
		runtime.Goexit()
	}
	panic("boom")
}

// failsWith is a base whose first answer is a 503 with that body, and whose others are
// good.
func failsWith(b io.ReadCloser) roundTrip {
	n := 0
	return func(r *http.Request) (*http.Response, error) {
		if n++; n > 1 {
			return response(200, strings.NewReader("good")), nil
		}
		resp := response(503, nil)
		resp.Body, resp.Request = b, r
		return resp, nil
	}
}

// B1: the kit reads a failed answer aside from the call, where a panic of its body
// would end the process. It is reported, or goes on from where the call waits for it.
func TestB1_ABodyPanicsWhileTheKitReadsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		bomb   bomb
		goesOn bool // as for the call
	}{
		"at once":      {bomb{}, false},
		"its Goexit":   {bomb{exits: true}, true},
		"too late":     {bomb{after: time.Minute}, true},
		"when it ends": {bomb{inClose: true}, true},
	} {
		for _, handled := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := narrow()
					p.Breaker, p.Retry.MaxAttempts = breaker.Off(), 2
					var told []any
					var opts []httpmw.Option
					if handled {
						opts = append(opts, httpmw.WithPanicHandler(func(_ string, value any, _ []byte) { told = append(told, value) }))
					}
					b := tc.bomb
					tr := over(t, failsWith(&b), p, opts...)
					var resp *http.Response
					var err error
					panicked := func() (value any) {
						defer func() { value = recover() }()
						resp, err = tr.RoundTrip(requestOf(t, t.Context(), http.MethodGet, nil))
						return nil
					}()
					time.Sleep(time.Hour)
					synctest.Wait()
					require.Positive(t, b.closes)
					switch {
					case b.inClose: // that is the call's own doing, and goes on from it
						require.Equal(t, "boom", panicked)
					case !handled && !tc.goesOn:
						require.Equal(t, "boom", panicked)
					default:
						require.Nil(t, panicked)
						require.NoError(t, err)
						require.Equal(t, "good", readAll(t, resp.Body))
						if handled && !b.exits {
							require.Equal(t, []any{"boom"}, told)
						}
					}
					resp, err = tr.RoundTrip(requestOf(t, t.Context(), http.MethodGet, nil))
					require.NoError(t, err, "the permit is free again")
					require.NoError(t, resp.Body.Close())
				})
			})
		}
	}
}

// The same for an answer that is given up for another upstream's.
func TestB1_ABodyPanicsWhileItIsDrained(t *testing.T) {
	for name, b := range map[string]*bomb{"in Read": {}, "in Close": {inClose: true}, "late": {after: time.Minute}, "in a late Close": {after: time.Minute, inClose: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := narrow()
				p.Breaker, p.Retry = breaker.Off(), retry.Off()
				k := newKit(t, p)
				var told []any
				tr, err := httpmw.Failover(failsWith(b), k, []httpmw.Upstream{{URL: "http://a.test"}, {URL: "http://b.test"}},
					httpmw.WithPanicHandler(func(_ string, value any, _ []byte) { told = append(told, value) }))
				require.NoError(t, err)
				req, err := http.NewRequest(http.MethodGet, "http://a.test/", nil)
				require.NoError(t, err)
				resp, err := tr.RoundTrip(req)
				require.NoError(t, err)
				require.Equal(t, "good", readAll(t, resp.Body))
				time.Sleep(time.Hour)
				synctest.Wait()
				require.NotEmpty(t, told)
				require.Positive(t, b.closes)
				resp, err = tr.RoundTrip(req)
				require.NoError(t, err, "the permit is free again")
				require.NoError(t, resp.Body.Close())
			})
		})
	}
}

// A body that panics in the caller's hands has failed, holds nothing, and the panic
// goes on.
func TestB1_ABodyPanicsInTheCallersHands(t *testing.T) {
	for name, b := range map[string]*bomb{"Read": {}, "Close": {inClose: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ends []call.Result
				p := narrow()
				p.Breaker, p.Retry = &breaker.Config{Consecutive: 1}, retry.Off()
				p.Classify = func(_ context.Context, _ call.Info, res call.Result) call.Result {
					res.Class = call.OK // so that its end is the body's
					return res
				}
				k, err := holdfast.New(holdfast.Config{Default: p, Hooks: holdfast.Hooks{
					Attempt: func(ctx context.Context, _ call.Attempt) (context.Context, func(call.Result)) {
						return ctx, func(res call.Result) { ends = append(ends, res) }
					},
				}})
				require.NoError(t, err)
				resp, err := httpmw.NewTransport(failsWith(b), k).RoundTrip(requestOf(t, t.Context(), http.MethodGet, nil))
				require.NoError(t, err)
				require.PanicsWithValue(t, "boom", func() {
					if !b.inClose {
						_, _ = resp.Body.Read(make([]byte, 1))
					}
					_ = resp.Body.Close()
				})
				require.Len(t, ends, 1)
				require.Equal(t, call.ServerFault, ends[0].Class)
				for _, br := range k.Breakers() {
					require.Equal(t, breaker.Open, br.State())
				}
			})
		})
	}
}

// B1, H1: the body of a hedge that does not come to send it is closed, whatever ended
// the hedge.
func TestB1_TheBodyOfAHedgeThatPanicsIsClosed(t *testing.T) {
	for name, tc := range map[string]struct {
		base func(n int, r *http.Request)
		hook func(*http.Request, int) error
	}{
		"the base":   {func(n int, _ *http.Request) { panicOn(n) }, nil},
		"its Goexit": {func(n int, _ *http.Request) { exitOn(n) }, nil},
		"a hook":     {func(int, *http.Request) {}, func(_ *http.Request, n int) error { panicOn(n); return nil }},
		"after it has closed it": {func(n int, r *http.Request) {
			if n == 2 {
				r.Body.Close()
			}
			panicOn(n)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := quick()
				p.Timeout, p.Breaker = nil, breaker.Off()
				p.Retry = &retry.Policy{MaxAttempts: 3, Hedge: retry.Hedge{Delay: 10 * time.Millisecond}}
				var n atomic.Int32
				var opts []httpmw.Option
				if tc.hook != nil {
					opts = append(opts, httpmw.WithAttemptHook(tc.hook))
				}
				tr := over(t, func(r *http.Request) (*http.Response, error) {
					tc.base(int(n.Add(1)), r)
					<-r.Context().Done()
					r.Body.Close()
					return nil, r.Context().Err()
				}, p, opts...)
				var bodies []*opaque
				open := func() (io.ReadCloser, error) {
					o := &opaque{Reader: strings.NewReader("x")}
					bodies = append(bodies, o)
					return o, nil
				}
				first, _ := open()
				req := requestOf(t, t.Context(), http.MethodPut, first)
				req.GetBody = open
				over := make(chan struct{})
				go func() {
					defer close(over)
					defer func() { _ = recover() }()
					_, _ = tr.RoundTrip(req)
				}()
				<-over
				require.GreaterOrEqual(t, len(bodies), 2)
				for i, b := range bodies {
					require.Equal(t, 1, b.closed(), "body %d of %d", i, len(bodies))
				}
			})
		})
	}
}

func panicOn(n int) {
	if n == 2 {
		panic("boom")
	}
}

func exitOn(n int) {
	if n == 2 {
		runtime.Goexit()
	}
}
