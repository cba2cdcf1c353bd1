package grpcmw_test

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
)

var errDown = status.Error(codes.Unavailable, "as scripted")

// single lets one attempt at a time through: a second one shows whether the
// first still holds its permit.
func single(p *holdfast.Policy) { p.Bulkhead = &bulkhead.Config{Limit: 1} }

// verdicts notes how attempts are classified.
type verdicts struct {
	mu      sync.Mutex
	classes []call.Class
}

func (v *verdicts) note(p *holdfast.Policy) {
	p.Classify = func(_ context.Context, _ call.Info, r call.Result) call.Result {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.classes = append(v.classes, r.Class)
		return r
	}
}

func (v *verdicts) take() []call.Class {
	v.mu.Lock()
	defer v.mu.Unlock()
	classes := v.classes
	v.classes = nil
	return classes
}

func TestD076_AStreamIsBookedAtItsEnd(t *testing.T) { // G3
	bubble(t, func(t *testing.T) {
		s := play(t, messages(1, 0, errDown))
		cc := s.connect(t, newKit(t, with(readOnly)))
		for range 5 {
			stream, err := open(t.Context(), cc, serverStream)
			require.NoError(t, err)
			texts, err := readAll(stream)
			require.Len(t, texts, 1)
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.Equal(t, "as scripted", status.Convert(err).Message())
		}
		_, err := open(t.Context(), cc, serverStream)
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, 5, s.hitCount())
	})
}

// Asking for the context before the first message must not keep gRPC from
// repeating what the server has not processed; later it knows the peer.
func TestG3_ContextIsNotGRPCsOwnBeforeTheFirstMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, messages(1, 0, nil))
		cc := s.connect(t, newKit(t, policy()))
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "value")
		stream, err := open(ctx, cc, serverStream)
		require.NoError(t, err)
		require.Equal(t, "value", stream.Context().Value(key{}))
		_, known := peer.FromContext(stream.Context())
		require.False(t, known)
		require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
		_, known = peer.FromContext(stream.Context())
		require.True(t, known)
		require.NoError(t, stream.Context().Err())
		_, err = readAll(stream)
		require.NoError(t, err)
		require.Error(t, stream.Context().Err(), "it ends with the stream, as gRPC's does")
	})
}

func TestABidirectionalStreamPassesThrough(t *testing.T) {
	echo := func(s grpc.ServerStream) error {
		for {
			m := new(wrapperspb.StringValue)
			if err := s.RecvMsg(m); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			if err := s.SendMsg(m); err != nil {
				return err
			}
		}
	}
	bubble(t, func(t *testing.T) {
		s := play(t, echo)
		cc := s.connect(t, newKit(t, policy()))
		var trailer, header metadata.MD
		stream, err := open(t.Context(), cc, bidiStream, grpc.Header(&header), grpc.Trailer(&trailer))
		require.NoError(t, err)
		for range 100 {
			m := new(wrapperspb.StringValue)
			require.NoError(t, stream.SendMsg(wrapperspb.String("ping")))
			require.NoError(t, stream.RecvMsg(m))
			require.Equal(t, "ping", m.GetValue())
		}
		md, err := stream.Header()
		require.NoError(t, err)
		require.NotEmpty(t, md)
		require.NoError(t, stream.CloseSend())
		require.Equal(t, io.EOF, stream.RecvMsg(new(wrapperspb.StringValue)))
		require.NotNil(t, stream.Trailer())
		require.NotEmpty(t, header)
	})
}
