package grpcmw_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	// The interop test service is registered: its names can be checked.
	_ "google.golang.org/grpc/interop/grpc_testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
)

func table(methods map[string]holdfast.Policy) (*grpcmw.Interceptors, error) {
	k, err := holdfast.New(holdfast.Config{Methods: methods})
	if err != nil {
		return nil, err
	}
	return grpcmw.New(k)
}

func TestG2_NamesAreChecked(t *testing.T) {
	for name, want := range map[string]string{
		"/pkg.Service/Method": "", "pkg.Service/Method": "", "Service/Method": "", "pkg.Service": "", "/pkg.Service/": "",
		"pkg.Service/": "", "Service": "", "my-service.v1/Do_It2": "",
		"/grpc.testing.TestService/UnaryCall": "", "grpc.testing.TestService": "",

		"": "is no gRPC name", "/": "is no gRPC name", "//": "is no gRPC name", "/pkg.Service": "is no gRPC name",
		"/Method": "is no gRPC name", "//Method": "is no gRPC name", "//pkg.Service/Method": "is no gRPC name",
		"pkg.Service/A/B": "is no gRPC name", "pkg.Service/A/": "is no gRPC name", "pkg Service/A": "is no gRPC name", "pkg.Service/A ": "is no gRPC name",
		" pkg.Service": "is no gRPC name", "*": "is no gRPC name", "pkg.*": "is no gRPC name", "pkg.Service/*": "is no gRPC name",
		"pkg..Service": "is no gRPC name", ".pkg.Service": "is no gRPC name", "pkg.Service.": "is no gRPC name", "GET /items/{id}": "is no gRPC name",
		"pkg.Service/Method,pkg.Service/Other": "is no gRPC name", "http://pkg.Service/Method": "is no gRPC name", "pkg.Sérvice": "is no gRPC name",

		"/grpc.testing.TestService/NoSuchCall": "service grpc.testing.TestService has no method NoSuchCall; it has CacheableUnaryCall, EmptyCall,",
		"grpc.testing.TestService.EmptyCall":   "is a method, whose name is written /grpc.testing.TestService/EmptyCall",
		"grpc.testing.SimpleRequest":           "is no service",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := table(map[string]holdfast.Policy{name: {}})
			if want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, fmt.Sprintf("Methods[%q]", name))
			if strings.HasPrefix(want, "is no gRPC name") {
				require.ErrorContains(t, err, "/pkg.Service/Method")
			}
		})
	}
}

func TestD074_DuplicateNamesAreAnError(t *testing.T) {
	for _, names := range [][2]string{{"/pkg.S/M", "pkg.S/M"}, {"pkg.S", "/pkg.S/"}, {"pkg.S", "pkg.S/"}} {
		_, err := table(map[string]holdfast.Policy{names[0]: {}, names[1]: {}})
		require.ErrorContains(t, err, "names the same as")
		require.ErrorContains(t, err, names[0])
		require.ErrorContains(t, err, names[1])
	}
}

func TestAllBadEntriesAreNamedAtOnce(t *testing.T) {
	_, err := table(map[string]holdfast.Policy{"*": {}, "/": {}, "pkg.S": {}})
	require.ErrorContains(t, err, `Methods["*"]`)
	require.ErrorContains(t, err, `Methods["/"]`)
	require.NotContains(t, err.Error(), `pkg.S"]`)
}

// The most exact name holds, in whatever order the table was filled.
func TestD074_TheMostExactNameHolds(t *testing.T) {
	attempts := func(n int) holdfast.Policy {
		return with(func(p *holdfast.Policy) {
			p.Safety, p.Breaker, p.Retry.MaxAttempts = call.ReadOnly, breaker.Off(), n
		})
	}
	for _, names := range [][2]string{{"pkg.S", "/pkg.S/M"}, {"/pkg.S/", "pkg.S/M"}, {"pkg.S/", "/pkg.S/M"}} {
		for order := range 6 {
			bubble(t, func(t *testing.T) {
				s := play(t, fail(codes.Unavailable))
				c := holdfast.Config{Methods: map[string]holdfast.Policy{}}
				steps := []func(){
					func() { c.Default = attempts(1) },
					func() { c.Methods[names[0]] = attempts(2) },
					func() { c.Methods[names[1]] = attempts(3) },
				}
				first := order % 3
				steps[0], steps[first] = steps[first], steps[0]
				if order >= 3 {
					steps[1], steps[2] = steps[2], steps[1]
				}
				for _, step := range steps {
					step()
				}
				k, err := holdfast.New(c)
				require.NoError(t, err)
				cc := s.connect(t, k)
				hits := 0
				for name, want := range map[string]int{"/pkg.S/M": 3, "/pkg.S/Other": 2, "/pkg.Other/M": 1, "/pkg.S.T/M": 1, "/pkg/S/M": 1} {
					_, err := invokeMethod(t.Context(), cc, name)
					require.Equal(t, codes.Unavailable, status.Code(err))
					require.Equal(t, want, s.hitCount()-hits, name)
					hits = s.hitCount()
				}
			})
		}
	}
}

// What a method's own entry leaves out comes from its service's.
func TestAMethodInheritsFromItsService(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable))
		k, err := holdfast.New(holdfast.Config{Default: policy(), Methods: map[string]holdfast.Policy{
			"pkg.S": {Retry: &retry.Policy{MaxAttempts: 2}}, "pkg.S/M": {Safety: call.ReadOnly}, "pkg.T/M": {Safety: call.ReadOnly},
		}})
		require.NoError(t, err)
		cc := s.connect(t, k)
		_, _ = invokeMethod(t.Context(), cc, "/pkg.S/M")
		require.Equal(t, 2, s.hitCount())
		_, _ = invokeMethod(t.Context(), cc, "/pkg.T/M")
		require.Equal(t, 5, s.hitCount())
	})
}

// Methods that inherit a service's breaker share it; one with its own does not.
func TestStateBelongsToTheEntryThatSetsIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		own := with(oneAttempt)
		s := play(t, fail(codes.Unavailable))
		k, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{"pkg.S": own, "/pkg.S/Own": {Breaker: own.Breaker}}})
		require.NoError(t, err)
		cc := s.connect(t, k)
		for range 5 {
			_, err := invokeMethod(t.Context(), cc, "/pkg.S/A")
			require.NotErrorIs(t, err, breaker.ErrOpen)
		}
		_, err = invokeMethod(t.Context(), cc, "/pkg.S/B")
		require.ErrorIs(t, err, breaker.ErrOpen)
		var open *breaker.OpenError
		require.ErrorAs(t, err, &open)
		require.Equal(t, cc.Target()+"|pkg.S", open.Key())
		_, err = invokeMethod(t.Context(), cc, "/pkg.S/Own")
		require.NotErrorIs(t, err, breaker.ErrOpen)
		_, err = invokeMethod(t.Context(), cc, "/pkg.T/A")
		require.NotErrorIs(t, err, breaker.ErrOpen)
	})
}
