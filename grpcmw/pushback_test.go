package grpcmw_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/retry"
)

// push fails with a pushback of these values, in an answer without a header or
// behind one.
func push(code codes.Code, behindHeader bool, values ...string) hit {
	return func(s grpc.ServerStream) error {
		if behindHeader {
			if err := s.SendHeader(nil); err != nil {
				return err
			}
		}
		s.SetTrailer(metadata.MD{"grpc-retry-pushback-ms": values})
		return status.Error(code, "as scripted")
	}
}

// R4 and gRPC proposal A6: a pushback sets the wait, to nothing too, or forbids the
// repeat. For a unary call and a server's stream.
func TestD040_PushbackIsObeyed(t *testing.T) {
	for name, c := range map[string]struct {
		values []string
		hits   int
		took   time.Duration
		reason error
	}{
		"50":            {[]string{"50"}, 2, 50 * time.Millisecond, nil},
		"0":             {[]string{"0"}, 2, 0, nil},
		"above the cap": {[]string{"60001"}, 1, 0, retry.ErrRetryAfter},
		"at the cap":    {[]string{"60000"}, 2, time.Minute, nil},
		"292 years":     {[]string{"9223372036854775807"}, 1, 0, retry.ErrRetryAfter},
		"-1":            {[]string{"-1"}, 1, 0, nil},
		"x":             {[]string{"x"}, 1, 0, nil},
		"empty":         {[]string{""}, 1, 0, nil},
		"fraction":      {[]string{"1.5"}, 1, 0, nil},
		"out of range":  {[]string{"9223372036854775808"}, 1, 0, nil},
		"repeated":      {[]string{"50", "50"}, 1, 0, nil},
	} {
		for _, behindHeader := range []bool{false, true} {
			for kind, do := range map[string]func(*testing.T, *grpc.ClientConn) error{
				"unary": func(t *testing.T, cc *grpc.ClientConn) error {
					_, err := invoke(t.Context(), cc)
					return err
				},
				"stream": func(t *testing.T, cc *grpc.ClientConn) error {
					s, err := open(t.Context(), cc, serverStream)
					require.NoError(t, err)
					_, err = readAll(s)
					return err
				},
			} {
				t.Run(name+" "+kind, func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						s := play(t, push(codes.Unavailable, behindHeader, c.values...), say("answer"))
						cc := s.connect(t, newKit(t, with(readOnly)))
						begin := time.Now()
						err := do(t, cc)
						require.Equal(t, c.hits, s.hitCount())
						require.Equal(t, c.took, time.Since(begin))
						if c.hits == 1 {
							require.Equal(t, codes.Unavailable, status.Code(err))
						} else {
							require.NoError(t, err)
						}
						if c.reason != nil {
							require.ErrorIs(t, err, c.reason)
						}
					})
				})
			}
		}
	}
}

// The back-off begins anew after a pushback: 10, 20, then told 5, then 10, 20.
func TestD040_TheBackoffBeginsAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var at []time.Time
		noted := func(next hit) hit {
			return func(s grpc.ServerStream) error {
				at = append(at, time.Now())
				return next(s)
			}
		}
		down := noted(fail(codes.Unavailable))
		s := play(t, down, down, noted(push(codes.Unavailable, false, "5")), down, down, noted(say("")))
		_, err := invoke(t.Context(), s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			p.Retry.MaxAttempts = 6
			p.Breaker.MinCalls = 10
		}))))
		require.NoError(t, err)
		var waits []int
		for i := 1; i < len(at); i++ {
			waits = append(waits, int(at[i].Sub(at[i-1]).Milliseconds()))
		}
		require.Equal(t, []int{10, 20, 5, 10, 20}, waits)
	})
}

// What would not be repeated anyway is not for a pushback.
func TestD040_APushbackDoesNotMakeAFailureRepeatable(t *testing.T) {
	for _, code := range []codes.Code{codes.InvalidArgument, codes.DataLoss} {
		bubble(t, func(t *testing.T) {
			s := play(t, push(code, false, "5"))
			_, err := invoke(t.Context(), s.connect(t, newKit(t, with(readOnly))))
			require.Equal(t, code, status.Code(err))
			require.Equal(t, 1, s.hitCount())
		})
	}
}

// After a pushback that forbids it no hedge is sent.
func TestD040_NoHedgeAfterAPushback(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, after(5*time.Millisecond, push(codes.Unavailable, false, "-1")), say("hedge"))
		_, err := invoke(t.Context(), s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			p.Retry.Hedge = retry.Hedge{Delay: 10 * time.Millisecond}
		}))))
		require.Equal(t, codes.Unavailable, status.Code(err))
		time.Sleep(time.Second)
		require.Equal(t, 1, s.hitCount())
	})
}
