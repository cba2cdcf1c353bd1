package grpcmw_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	// The interop test service is registered: its names can be checked.
	_ "google.golang.org/grpc/interop/grpc_testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
)

// The service holdfast.test.v1.Levels declares a level for each of its methods.
func init() {
	m := func(name string, level descriptorpb.MethodOptions_IdempotencyLevel) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: proto.String(name), InputType: proto.String(".google.protobuf.StringValue"), OutputType: proto.String(".google.protobuf.StringValue"),
			Options: &descriptorpb.MethodOptions{IdempotencyLevel: level.Enum()},
		}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("holdfast/test/v1/levels.proto"), Package: proto.String("holdfast.test.v1"), Syntax: proto.String("proto3"),
		Dependency: []string{"google/protobuf/wrappers.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: proto.String("Levels"),
			Method: []*descriptorpb.MethodDescriptorProto{
				m("Read", descriptorpb.MethodOptions_NO_SIDE_EFFECTS),
				m("Put", descriptorpb.MethodOptions_IDEMPOTENT),
				m("Add", descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN),
			},
		}},
	}, protoregistry.GlobalFiles)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(file)
	}
	if err != nil {
		panic(err)
	}
}

func TestG2_SafetyComesFromTheDescriptor(t *testing.T) {
	const service = "/holdfast.test.v1.Levels/"
	for name, c := range map[string]struct {
		method string
		table  map[string]holdfast.Policy
		byDef  call.Safety
		hits   int
	}{
		"read":                      {service + "Read", nil, 0, 3},
		"put":                       {service + "Put", nil, 0, 3},
		"add":                       {service + "Add", nil, 0, 1},
		"unknown":                   {"/not.registered.S/Read", nil, 0, 1},
		"dots":                      {"/holdfast.test.v1.Levels.Read/", nil, 0, 1},
		"its own entry outranks it": {service + "Read", map[string]holdfast.Policy{service + "Read": {Safety: call.Unsafe}}, 0, 1},
		"and declares it":           {service + "Add", map[string]holdfast.Policy{service + "Add": {Safety: call.Idempotent}}, 0, 3},
		"a service's does not":      {service + "Read", map[string]holdfast.Policy{"holdfast.test.v1.Levels": {Safety: call.Unsafe}}, 0, 3},
		"but fills a gap":           {service + "Add", map[string]holdfast.Policy{"holdfast.test.v1.Levels": {Safety: call.ReadOnly}}, 0, 3},
		"so does the default":       {service + "Add", nil, call.ReadOnly, 3},
		"which does not outrank":    {service + "Read", nil, call.Unsafe, 3},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, fail(codes.Unavailable))
				k, err := holdfast.New(holdfast.Config{Default: with(func(p *holdfast.Policy) { p.Safety = c.byDef }), Methods: c.table})
				require.NoError(t, err)
				cc := s.connect(t, k)
				_, err = invokeMethod(t.Context(), cc, c.method)
				require.Error(t, err)
				require.Equal(t, c.hits, s.hitCount())
			})
		})
	}
}

// A fallback on a method that the wire declares no read is refused at once.
func TestF1_AFallbackForWhatIsNoRead(t *testing.T) {
	answer := &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return nil, nil }}
	for method, bad := range map[string]bool{"Read": false, "Put": true, "Add": false} {
		_, err := table(map[string]holdfast.Policy{"holdfast.test.v1.Levels/" + method: {Fallback: answer}})
		if bad {
			require.ErrorContains(t, err, "Fallback")
		} else {
			require.NoError(t, err)
		}
	}
}

func TestExplainReadsGRPCNames(t *testing.T) {
	k, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{
		"holdfast.test.v1.Levels": {Retry: &retry.Policy{MaxAttempts: 2}},
	}})
	require.NoError(t, err)
	_, err = grpcmw.New(k)
	require.NoError(t, err)

	for _, name := range []string{"/holdfast.test.v1.Levels/Read", "holdfast.test.v1.Levels/Read"} {
		e, err := k.Explain(name)
		require.NoError(t, err)
		require.Equal(t, "/holdfast.test.v1.Levels/Read", e.Method)
		require.Contains(t, e.Entry, "holdfast.test.v1.Levels")
		require.Equal(t, call.ReadOnly, e.Safety)
		require.Contains(t, e.SafetyFrom, "grpc")
		require.Empty(t, e.OneAttempt)
		require.Equal(t, 2, e.Policy.Retry.MaxAttempts)
	}

	e, err := k.Explain("/grpc.testing.TestService/EmptyCall")
	require.NoError(t, err)
	require.Equal(t, "Default", e.Entry)
	require.Contains(t, e.OneAttempt, "nothing declares")
	text := e.String()
	require.Contains(t, text, "for a stream until it is open: Timeout.Attempt 10s")
	require.Contains(t, text, "the first message of a stream, from the start of its attempt: only the caller's context")
	require.Contains(t, text, "each wait for a message of an open stream: only the caller's context")
}
