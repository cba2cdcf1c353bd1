package program_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/examples/internal/program"
)

// The program under test is this binary, run with arguments of its own.
func TestMain(m *testing.M) {
	if os.Getenv("PROGRAM") == "" {
		os.Exit(m.Run())
	}
	program.Main("example", func(_ context.Context, args []string, stdout, stderr io.Writer) error {
		flags := flag.NewFlagSet("example", flag.ContinueOnError)
		flags.SetOutput(stderr)
		fails := flags.Bool("fail", false, "fail")
		if err := program.Parse(flags, args); err != nil {
			return err
		}
		if *fails {
			return errors.New("as it was told to")
		}
		_, err := io.WriteString(stdout, "done\n")
		return err
	})
}

func TestAProgramEnds(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, tc := range []struct {
		args   []string
		code   int
		output string
	}{
		{nil, 0, "done\n"},
		{[]string{"-fail"}, 1, "example: as it was told to\n"},
		{[]string{"more"}, 1, "example: unexpected argument \"more\"\n"},
		{[]string{"-h"}, 0, "Usage of example:\n  -fail\n    \tfail\n"},
	} {
		cmd := exec.CommandContext(t.Context(), exe, tc.args...)
		cmd.Env = append(os.Environ(), "PROGRAM=1")
		output, _ := cmd.CombinedOutput()
		require.Equal(t, tc.code, cmd.ProcessState.ExitCode(), tc.args)
		require.Equal(t, tc.output, string(output), tc.args)
	}
}

func TestAFileIsNoTerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer f.Close()
	require.False(t, program.IsTerminal(f))
	require.False(t, program.IsTerminal(io.Discard))
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		require.NoError(t, program.Pause(ctx, time.Hour))
		require.NoError(t, program.Pause(ctx, 0))
		require.Equal(t, time.Hour, time.Since(began))
		time.AfterFunc(time.Minute, cancel)
		require.ErrorIs(t, program.Pause(ctx, time.Hour), context.Canceled)
		require.ErrorIs(t, program.Pause(ctx, 0), context.Canceled)
		require.Equal(t, time.Hour+time.Minute, time.Since(began))
	})
}
