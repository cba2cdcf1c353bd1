package policyfile

import (
	"context"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
)

// Whatever a file can hold comes back from it, in either syntax.
func TestAFileComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &File{Wire: rapid.SampledFrom([]string{"grpc", "http"}).Draw(t, "wire")}
		f.Name = rapid.SampledFrom([]string{"", "orders", "on", "010", "~", "a: b", "é\n\t\"'", "<<", " x ", "- 1", "#", "1e3", "0x1", "2001-01-01"}).Draw(t, "name")
		drawPolicy(t, "default", reflect.ValueOf(&f.Default).Elem(), policyShape())
		for _, name := range []string{"pkg.S", "/pkg.S/M", "GET /items/{id}", "weird: 'name'\x01", "1", "true", ""} {
			if rapid.IntRange(0, 3).Draw(t, name) == 0 {
				if f.Methods == nil {
					f.Methods = map[string]holdfast.Policy{}
				}
				var p holdfast.Policy
				drawPolicy(t, name, reflect.ValueOf(&p).Elem(), policyShape())
				f.Methods[name] = p
			}
		}
		for _, format := range []func() ([]byte, error){f.YAML, f.JSON} {
			text, err := format()
			require.NoError(t, err)
			root, isJSON, fault := parse(text)
			require.Nil(t, fault, "%s", text)
			d := &decoder{places: map[string]place{}}
			again := d.root(root, !isJSON)
			require.Empty(t, d.faults, "%s", text) // what it says need not be valid
			require.Equal(t, f, again, "%s", text)
		}
	})
}

// drawPolicy sets fields that a file can hold to anything that can be written.
func drawPolicy(t *rapid.T, path string, v reflect.Value, s *shape) {
	for _, f := range s.fields {
		name := path + "." + f.name
		if rapid.IntRange(0, 2).Draw(t, name) > 0 {
			continue
		}
		field := v.Field(f.index)
		if field.Kind() == reflect.Pointer {
			field.Set(reflect.New(f.typ))
			field = field.Elem()
		}
		if len(f.words) > 0 && (f.is == wordsOnly || rapid.IntRange(0, 2).Draw(t, name+" word") == 0) {
			field.Set(rapid.SampledFrom(f.words).Draw(t, name).value)
			continue
		}
		switch f.is {
		case group:
			drawPolicy(t, name, field, f.shape)
		case toggle:
			field.SetBool(true)
		case integer:
			field.SetInt(int64(rapid.IntRange(1, math.MaxInt-1).Draw(t, name)))
		case decimal:
			field.SetFloat(rapid.Float64Range(5e-324, math.MaxFloat64).Draw(t, name))
		case duration:
			field.SetInt(rapid.Int64Range(1, math.MaxInt64).Draw(t, name))
		}
	}
}

// What a file cannot hold is named, not dropped.
func TestWhatIsNoDataIsNotWritten(t *testing.T) {
	f := &File{}
	f.Hooks.Retry = func(context.Context, holdfast.Retry) {}
	f.Default.Classify = func(_ context.Context, _ call.Info, r call.Result) call.Result { return r }
	f.Methods = map[string]holdfast.Policy{"m": {
		Breaker:  &breaker.Config{Hooks: breaker.Hooks{Refused: func(*breaker.OpenError) {}}},
		Fallback: &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return nil, nil }},
	}}
	for _, format := range []func() ([]byte, error){f.YAML, f.JSON} {
		_, err := format()
		for _, field := range []string{`Wire = "": must be grpc or http`, "Hooks: ", "Default.Classify: ", `Methods["m"].Breaker.Hooks: `, `Methods["m"].Fallback`} {
			require.ErrorContains(t, err, field)
		}
	}
}

// C2: a file is put in force when its user says so; state is kept, and a bad file
// changes nothing and is told of.
func TestC2_AWatchedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "policies.yaml")
		save := func(text string) {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		const head = "wire: http\nname: db\ndefault:\n  retry: off\n  breaker: {consecutive: 1, jitter: none, cooldown: "
		save(head + "30s}\n")
		amended := 0
		source := Source{Path: path, Amend: func(f *File) error {
			amended++
			f.Default.Classify = func(_ context.Context, _ call.Info, res call.Result) call.Result { return res }
			if len(f.Methods) > 1 {
				return errors.New("too many")
			}
			return nil
		}}
		f, err := source.Load()
		require.NoError(t, err)
		k, err := holdfast.New(f.Config)
		require.NoError(t, err)
		down := errors.New("down")
		try := func() error {
			_, err := holdfast.Do(t.Context(), k, call.Info{Target: "db"}, func(context.Context) (int, error) { return 0, down })
			return err
		}
		require.ErrorIs(t, try(), down)
		require.ErrorIs(t, try(), breaker.ErrOpen)

		trigger, reports, ended := make(chan struct{}), make(chan error, 1), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(ended)
			Watch(ctx, k, source, trigger, func(err error) { reports <- err })
		}()
		reload := func() error {
			trigger <- struct{}{}
			return <-reports
		}
		time.Sleep(10 * time.Second)
		save(head + "5s}\nmethods: {GET /x: {timeout: off}}\n")
		synctest.Wait()
		require.ErrorIs(t, try(), breaker.ErrOpen, "nothing is read before it is asked for")
		require.NoError(t, reload())
		var open *breaker.OpenError
		require.ErrorAs(t, try(), &open)
		require.Equal(t, 20*time.Second, open.RetryAfter(), "the cooldown that runs ends as it would have")
		explained := func() holdfast.Explanation {
			e, err := k.Explain("GET /x")
			require.NoError(t, err)
			return e
		}
		require.True(t, explained().Policy.Timeout.IsOff())
		require.NotNil(t, explained().Policy.Classify)

		for text, want := range map[string]string{
			head + "0s}\n":                              path + `:5:53: default.breaker.cooldown = 0s: has no meaning of its own`,
			head + "1s}\nmethods: {GET: {}}\n":          path + `:6:11: methods["GET"]: is no pattern`,
			head + "1s}\nmethods: {/a: {}, /b: {}}\n":   "too many",
			strings.Replace(head, "db", "x", 1) + "1s}": `Name = x: cannot change: the kit is "db"`,
		} {
			save(text)
			require.ErrorContains(t, reload(), want)
			require.True(t, explained().Policy.Timeout.IsOff(), "the old policies stay")
		}
		require.NoError(t, os.Remove(path))
		require.ErrorIs(t, reload(), os.ErrNotExist)
		require.Equal(t, 4, amended)
		require.Equal(t, []string{"db"}, slices.Collect(maps.Keys(maps.Collect(k.Breakers()))))

		cancel()
		<-ended
		closed := make(chan struct{})
		close(closed)
		Watch(t.Context(), k, source, closed, nil) // returns
		for range 20 {
			ready := make(chan int, 1)
			ready <- 1
			Watch(ctx, k, source, ready, func(error) { t.Error("nobody waits for it any more") })
		}
	})
}
