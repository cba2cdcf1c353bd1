package grpcmw_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/internal/memnet/memgrpc"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// The cases of gRPC's interoperability tests, of which the document
// interop-test-descriptions.md in github.com/grpc/grpc is the source. They are
// written anew here: package interop of grpc-go brings modules for OAuth, and its
// checks end the process.

// echo is the test service: it gives back sizes, statuses and metadata as asked.
type echo struct {
	testpb.UnimplementedTestServiceServer
}

const (
	echoInitial  = "x-grpc-test-echo-initial"
	echoTrailing = "x-grpc-test-echo-trailing-bin"
)

func (echo) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	return &testpb.Empty{}, nil
}

func (echo) UnaryCall(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	header, trailer := echoed(ctx)
	if err := grpc.SetHeader(ctx, header); err != nil {
		return nil, err
	}
	if err := grpc.SetTrailer(ctx, trailer); err != nil {
		return nil, err
	}
	if err := asked(r.GetResponseStatus()); err != nil {
		return nil, err
	}
	return &testpb.SimpleResponse{Payload: payload(r.GetResponseSize())}, nil
}

func (echo) StreamingOutputCall(r *testpb.StreamingOutputCallRequest, s testpb.TestService_StreamingOutputCallServer) error {
	return answer(r, s.Send)
}

func (echo) StreamingInputCall(s testpb.TestService_StreamingInputCallServer) error {
	sum := 0
	for {
		r, err := s.Recv()
		if err == io.EOF {
			return s.SendAndClose(&testpb.StreamingInputCallResponse{AggregatedPayloadSize: int32(sum)})
		}
		if err != nil {
			return err
		}
		sum += len(r.GetPayload().GetBody())
	}
}

func (echo) FullDuplexCall(s testpb.TestService_FullDuplexCallServer) error {
	header, trailer := echoed(s.Context())
	if err := s.SetHeader(header); err != nil {
		return err
	}
	s.SetTrailer(trailer)
	for {
		r, err := s.Recv()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := asked(r.GetResponseStatus()); err != nil {
			return err
		}
		if err := answer(r, s.Send); err != nil {
			return err
		}
	}
}

func answer(r *testpb.StreamingOutputCallRequest, send func(*testpb.StreamingOutputCallResponse) error) error {
	for _, p := range r.GetResponseParameters() {
		if err := send(&testpb.StreamingOutputCallResponse{Payload: payload(p.GetSize())}); err != nil {
			return err
		}
	}
	return nil
}

func echoed(ctx context.Context) (header, trailer metadata.MD) {
	md, _ := metadata.FromIncomingContext(ctx)
	return metadata.MD{echoInitial: md[echoInitial]}, metadata.MD{echoTrailing: md[echoTrailing]}
}

func asked(s *testpb.EchoStatus) error {
	return status.Error(codes.Code(s.GetCode()), s.GetMessage()) // nil for an OK
}

func payload(size int32) *testpb.Payload { return &testpb.Payload{Body: make([]byte, size)} }

var (
	requestSizes  = []int32{27182, 8, 1828, 45904}
	responseSizes = []int32{31415, 9, 2653, 58979}
)

func outputRequest(sizes ...int32) *testpb.StreamingOutputCallRequest {
	r := &testpb.StreamingOutputCallRequest{}
	for _, size := range sizes {
		r.ResponseParameters = append(r.ResponseParameters, &testpb.ResponseParameters{Size: size})
	}
	return r
}

// interop holds the cases that need neither accounts nor a balancer.
var interop = map[string]func(*testing.T, context.Context, testpb.TestServiceClient, *grpc.ClientConn){
	"empty_unary": func(t *testing.T, ctx context.Context, c testpb.TestServiceClient, _ *grpc.ClientConn) {
		reply, err := c.EmptyCall(ctx, &testpb.Empty{})
		require.NoError(t, err)
		require.True(t, proto.Equal(&testpb.Empty{}, reply))
	},
	"large_unary": func(t *testing.T, ctx context.Context, c testpb.TestServiceClient, _ *grpc.ClientConn) {
		reply, err := c.UnaryCall(ctx, &testpb.SimpleRequest{ResponseSize: 314159, Payload: payload(271828)})
		require.NoError(t, err)
		require.Len(t, reply.GetPayload().GetBody(), 314159)
	},
	"client_streaming": func(t *testing.T, ctx context.Context, c testpb.TestServiceClient, _ *grpc.ClientConn) {
		s, err := c.StreamingInputCall(ctx)
		require.NoError(t, err)
		for _, size := range requestSizes {
			require.NoError(t, s.Send(&testpb.StreamingInputCallRequest{Payload: payload(size)}))
		}
		reply, err := s.CloseAndRecv()
		require.NoError(t, err)
		require.EqualValues(t, 74922, reply.GetAggregatedPayloadSize())
	},
	"server_streaming": func(t *testing.T, ctx context.Context, c testpb.TestServiceClient, _ *grpc.ClientConn) {
		s, err := c.StreamingOutputCall(ctx, outputRequest(responseSizes...))
		require.NoError(t, err)
		for _, size := range responseSizes {
			reply, err := s.Recv()
			require.NoError(t, err)
			require.Len(t, reply.GetPayload().GetBody(), int(size))
		}
		_, err = s.Recv()
		require.Equal(t, io.EOF, err)
	},
	"ping_pong": func(t *testing.T, ctx context.Context, c testpb.TestServiceClient, _ *grpc.ClientConn) {
		s, err := c.FullDuplexCall(ctx)
		require.NoError(t, err)
		for i, size := range requestSizes {
			r := outputRequest(responseSizes[i])
			r.Payload = payload(size)
			require.NoError(t, s.Send(r))
			reply, err := s.Recv()
			require.NoError(t, err)
			require.Len(t, reply.GetPayload().GetBody(), int(responseSizes[i]))
		}
		require.NoError(t, s.CloseSend())
		_, err = s.Recv()
		require.Equal(t, io.EOF, err)
	},
	"empty_stream": func(t *testing.T, ctx context.Context, c testpb.TestServiceClient, _ *grpc.ClientConn) {
		s, err := c.FullDuplexCall(ctx)
		require.NoError(t, err)
		require.NoError(t, s.CloseSend())
		_, err = s.Recv()
		require.Equal(t, io.EOF, err)
	},
	"timeout_on_sleeping_server": func(t *testing.T, ctx context.Context, c testpb.TestServiceClient, _ *grpc.ClientConn) {
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		s, err := c.FullDuplexCall(ctx)
		if err == nil {
			if err = s.Send(&testpb.StreamingOutputCallRequest{Payload: payload(27182)}); err != nil {
				require.Equal(t, io.EOF, err)
			}
			_, err = s.Recv()
		}
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	},
	"cancel_after_begin": func(t *testing.T, ctx context.Context, c testpb.TestServiceClient, _ *grpc.ClientConn) {
		ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, "key1", "value1", "key2", "value2"))
		s, err := c.StreamingInputCall(ctx)
		require.NoError(t, err)
		cancel()
		// gRPC ends the stream on a goroutine of its own, and a server in memory
		// may be quicker; over real sockets this is a moment of real time.
		time.Sleep(10 * time.Millisecond)
		_, err = s.CloseAndRecv()
		require.Equal(t, codes.Canceled, status.Code(err))
	},
	"cancel_after_first_response": func(t *testing.T, ctx context.Context, c testpb.TestServiceClient, _ *grpc.ClientConn) {
		ctx, cancel := context.WithCancel(ctx)
		s, err := c.FullDuplexCall(ctx)
		require.NoError(t, err)
		require.NoError(t, s.Send(outputRequest(31415)))
		_, err = s.Recv()
		require.NoError(t, err)
		cancel()
		_, err = s.Recv()
		require.Equal(t, codes.Canceled, status.Code(err))
	},
	"status_code_and_message": func(t *testing.T, ctx context.Context, c testpb.TestServiceClient, _ *grpc.ClientConn) {
		want := status.Error(codes.Unknown, "test status message")
		echoStatus := &testpb.EchoStatus{Code: int32(codes.Unknown), Message: "test status message"}
		_, err := c.UnaryCall(ctx, &testpb.SimpleRequest{ResponseStatus: echoStatus})
		require.EqualError(t, err, want.Error())
		s, err := c.FullDuplexCall(ctx)
		require.NoError(t, err)
		require.NoError(t, s.Send(&testpb.StreamingOutputCallRequest{ResponseStatus: echoStatus}))
		require.NoError(t, s.CloseSend())
		_, err = s.Recv()
		require.EqualError(t, err, want.Error())
	},
	"special_status_message": func(t *testing.T, ctx context.Context, c testpb.TestServiceClient, _ *grpc.ClientConn) {
		text := "\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP \U0001f608\t\n"
		_, err := c.UnaryCall(ctx, &testpb.SimpleRequest{ResponseStatus: &testpb.EchoStatus{Code: int32(codes.Unknown), Message: text}})
		require.Equal(t, codes.Unknown, status.Code(err))
		require.Equal(t, text, status.Convert(err).Message())
	},
	"unimplemented_method": func(t *testing.T, ctx context.Context, c testpb.TestServiceClient, _ *grpc.ClientConn) {
		_, err := c.UnimplementedCall(ctx, &testpb.Empty{})
		require.Equal(t, codes.Unimplemented, status.Code(err))
	},
	"unimplemented_service": func(t *testing.T, ctx context.Context, _ testpb.TestServiceClient, cc *grpc.ClientConn) {
		_, err := testpb.NewUnimplementedServiceClient(cc).UnimplementedCall(ctx, &testpb.Empty{})
		require.Equal(t, codes.Unimplemented, status.Code(err))
	},
	"custom_metadata": func(t *testing.T, ctx context.Context, c testpb.TestServiceClient, _ *grpc.ClientConn) {
		ctx = metadata.AppendToOutgoingContext(ctx, echoInitial, "test_initial_metadata_value", echoTrailing, "\xab\xab\xab")
		check := func(header, trailer metadata.MD) {
			require.Equal(t, []string{"test_initial_metadata_value"}, header[echoInitial])
			require.Equal(t, []string{"\xab\xab\xab"}, trailer[echoTrailing])
		}
		var header, trailer metadata.MD
		_, err := c.UnaryCall(ctx, &testpb.SimpleRequest{ResponseSize: 1, Payload: payload(1)}, grpc.Header(&header), grpc.Trailer(&trailer))
		require.NoError(t, err)
		check(header, trailer)

		s, err := c.FullDuplexCall(ctx)
		require.NoError(t, err)
		require.NoError(t, s.Send(outputRequest(314159)))
		header, err = s.Header()
		require.NoError(t, err)
		_, err = s.Recv()
		require.NoError(t, err)
		require.NoError(t, s.CloseSend())
		_, err = s.Recv()
		require.Equal(t, io.EOF, err)
		check(header, s.Trailer())
	},
}

// Every case that passes on a bare connection passes with the kit.
func TestInterop(t *testing.T) {
	kits := map[string]func(*testing.T) []grpc.DialOption{
		"bare":     func(*testing.T) []grpc.DialOption { return nil },
		"standard": func(t *testing.T) []grpc.DialOption { return grpcmw.DialOptions(newKit(t, holdfast.Policy{})) },
		"repeats": func(t *testing.T) []grpc.DialOption {
			return grpcmw.DialOptions(newKit(t, with(func(p *holdfast.Policy) {
				readOnly(p)
				p.Timeout = &timeout.Limits{Attempt: time.Second, FirstMessage: time.Second, Idle: time.Second}
			})))
		},
		"hedges": func(t *testing.T) []grpc.DialOption {
			return grpcmw.DialOptions(newKit(t, with(func(p *holdfast.Policy) {
				readOnly(p)
				p.Retry = &retry.Policy{Hedge: retry.Hedge{Delay: time.Nanosecond}}
			})))
		},
	}
	for name, run := range interop {
		for kind, options := range kits {
			t.Run(name+"/"+kind, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					_, cc := memgrpc.Start(t, func(r grpc.ServiceRegistrar) { testpb.RegisterTestServiceServer(r, echo{}) }, options(t)...)
					run(t, t.Context(), testpb.NewTestServiceClient(cc), cc)
				})
			})
		}
	}
}

// The same over real sockets, with the standard kit and bare.
func TestInteropOverRealSockets(t *testing.T) {
	l := listen(t)
	serve(t, l, echo{})
	for name, run := range interop {
		t.Run(name, func(t *testing.T) {
			bare, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecureCredentials))
			require.NoError(t, err)
			defer func() { _ = bare.Close() }()
			for _, cc := range []*grpc.ClientConn{bare, dial(t, l.Addr().String(), holdfast.Policy{})} {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				run(t, ctx, testpb.NewTestServiceClient(cc), cc)
			}
		})
	}
}
