package policyfile_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/policyfile"
)

// C1: a file whose names no adapter of the kit reads would be in force and match
// nothing. It is refused, though its names may be names of another wire, too.
func TestC1_AFileOfAnotherWireIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.yaml")
	source := policyfile.Source{Path: path}
	save := func(wire string) {
		text := "wire: " + wire + "\nmethods:\n  /a.B/C: {retry: off}\n"
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	http1 := func(k *holdfast.Kit) { _ = httpmw.NewTransport(http.DefaultTransport, k) }
	grpc := func(k *holdfast.Kit) { _ = grpcmw.DialOptions(k) }
	do := func(k *holdfast.Kit) {
		_, err := holdfast.Do(t.Context(), k, call.Info{Target: "db"}, func(context.Context) (int, error) { return 1, nil })
		require.NoError(t, err)
	}
	for name, tc := range map[string]struct {
		used []func(*holdfast.Kit)
		wire string
		want string // "" is: it is in force
	}{
		"http on http":             {[]func(*holdfast.Kit){http1}, "http", ""},
		"grpc on grpc":             {[]func(*holdfast.Kit){grpc}, "grpc", ""},
		"grpc on http":             {[]func(*holdfast.Kit){http1}, "grpc", "wire = grpc: the kit's methods are named by the rules of http"},
		"http on grpc":             {[]func(*holdfast.Kit){grpc}, "http", "wire = http: the kit's methods are named by the rules of grpc"},
		"http on grpc and Do":      {[]func(*holdfast.Kit){do, grpc}, "http", "wire = http: the kit's methods are named by the rules of grpc"},
		"either on both":           {[]func(*holdfast.Kit){grpc, http1}, "grpc", ""},
		"on Do alone":              {[]func(*holdfast.Kit){do}, "grpc", ""},
		"on what nobody uses yet":  {nil, "grpc", ""},
		"on what was only read of": {[]func(*holdfast.Kit){func(k *holdfast.Kit) { _, _ = k.Explain("x") }}, "grpc", ""},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := holdfast.New(holdfast.Config{})
			require.NoError(t, err)
			for _, use := range tc.used {
				use(k)
			}
			save(tc.wire)
			trigger, reports := make(chan int, 1), make(chan error, 1)
			trigger <- 1
			close(trigger)
			policyfile.Watch(t.Context(), k, source, trigger, func(err error) { reports <- err })
			for _, err := range []error{source.Update(k), <-reports} {
				if tc.want == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, "policyfile: "+path+": "+tc.want)
				}
			}
			e, err := k.Explain("/a.B/C")
			require.NoError(t, err)
			require.Equal(t, tc.want == "", e.Policy.Retry.IsOff(), "the old policies stay")
		})
	}
}
