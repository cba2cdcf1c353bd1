package grpcmw_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// The same as for a unary call, for each kind of stream: what the server refused
// twice was not processed, and is opened again whatever its method does; but not
// once the client of a stream has sent a message.
func TestR2_AStreamOfAnyKindRefusedTwiceWasNotSent(t *testing.T) {
	for refused, refuse := range map[string]func(*http2.Framer, uint32) error{"RST_STREAM": reset(http2.ErrCodeRefusedStream), "GOAWAY": goAway} {
		for name, c := range map[string]struct {
			desc *grpc.StreamDesc
			sent bool
			code codes.Code
		}{
			"server":       {serverStream, true, codes.NotFound},
			"bidi":         {bidiStream, false, codes.NotFound},
			"bidi, sent":   {bidiStream, true, codes.Unavailable},
			"client, sent": {clientStream, true, codes.Unavailable},
		} {
			t.Run(refused+" "+name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					s := playFrames(t, refuse, refuse, notFound)
					var seen verdicts
					cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { single(p); seen.note(p) })))
					stream, err := cc.NewStream(t.Context(), c.desc, method)
					require.NoError(t, err)
					if c.sent {
						if err := stream.SendMsg(nil); err != io.EOF { // refused already
							require.NoError(t, err)
						}
					}
					require.NoError(t, stream.CloseSend())
					_, err = readAll(stream)
					require.Equal(t, c.code, status.Code(err), "%v", err)
					if c.code == codes.NotFound {
						require.EqualValues(t, 3, s.hits.Load())
						require.Equal(t, []call.Class{call.Unavailable, call.ClientFault}, seen.take())
					}
				})
			})
		}
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
