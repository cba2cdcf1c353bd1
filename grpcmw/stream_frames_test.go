package grpcmw_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/memnet/memframes"
)

// The same as for a unary call, for each kind of stream; but nothing is repeated
// once the client of a stream has sent a message.
func TestR2_AStreamOfAnyKindNotProcessedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		refuse memframes.Answer
		change func(*holdfast.Policy)
		desc   *grpc.StreamDesc
		sent   bool
		again  bool
	}{
		"GOAWAY server":                 {goAway, single, serverStream, true, true},
		"GOAWAY bidi":                   {goAway, single, bidiStream, false, true},
		"GOAWAY bidi, sent":             {goAway, single, bidiStream, true, false},
		"GOAWAY client, sent":           {goAway, single, clientStream, true, false},
		"RST_STREAM server":             {refused, single, serverStream, true, false},
		"RST_STREAM server, read-only":  {refused, readOnly, serverStream, true, true},
		"RST_STREAM bidi":               {refused, single, bidiStream, false, false},
		"RST_STREAM bidi, read-only":    {refused, readOnly, bidiStream, false, true},
		"RST_STREAM bidi, sent, safe":   {refused, readOnly, bidiStream, true, false},
		"RST_STREAM client, sent, safe": {refused, readOnly, clientStream, true, false},
		"RST_STREAM client, sent":       {refused, single, clientStream, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := playFrames(t, c.refuse, c.refuse, notFound)
				var seen verdicts
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { c.change(p); seen.note(p) })))
				stream, err := cc.NewStream(t.Context(), c.desc, method)
				require.NoError(t, err)
				if c.sent {
					if err := stream.SendMsg(nil); err != io.EOF { // refused already
						require.NoError(t, err)
					}
				}
				require.NoError(t, stream.CloseSend())
				_, err = readAll(stream)
				if !c.again {
					require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
					require.EqualValues(t, 2, int32(s.Streams()))
					require.Equal(t, []call.Class{call.Unavailable}, seen.take())
					return
				}
				require.Equal(t, codes.NotFound, status.Code(err), "%v", err)
				require.EqualValues(t, 3, int32(s.Streams()))
				require.Equal(t, []call.Class{call.Unavailable, call.ClientFault}, seen.take())
			})
		})
	}
}

// A server that sends its headers first and fails later, before any message: as
// nobody has asked for the header nothing was delivered.
func TestD073_AStreamWithHeadersFirstAndFailureLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		late := func(ss grpc.ServerStream) error {
			if err := ss.SendHeader(metadata.Pairs("which", "failing")); err != nil {
				return err
			}
			time.Sleep(20 * time.Millisecond)
			return errDown
		}
		s := play(t, late, late, messages(2, 0, nil))
		var seen verdicts
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { readOnly(p); seen.note(p) })))
		var header metadata.MD
		stream, err := open(t.Context(), cc, serverStream, grpc.Header(&header))
		require.NoError(t, err)
		texts, err := readAll(stream)
		require.NoError(t, err)
		require.Len(t, texts, 2)
		require.Empty(t, header["which"])
		require.Equal(t, []call.Class{call.Unavailable, call.Unavailable, call.OK}, seen.take())
	})
}
