package deadline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/timeout"
)

// T2: the caller's own end is told from the limit, and its cause is kept (D052).
func TestT2_TheCallersEndKeepsItsCause(t *testing.T) {
	cause := errors.New("the page was closed")
	plain, cancel := context.WithCancel(t.Context())
	require.NoError(t, deadline.Caller(plain))
	cancel()
	require.Equal(t, context.Canceled, deadline.Caller(plain))

	caused, cancelCause := context.WithCancelCause(t.Context())
	cancelCause(cause)
	err := deadline.Caller(caused)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, cause)
	require.NotErrorIs(t, err, timeout.ErrExceeded)
	require.EqualError(t, err, "context canceled: the page was closed")

	synctest.Test(t, func(t *testing.T) {
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		<-late.Done()
		err := deadline.Caller(late)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, timeout.ErrExceeded)
	})
}
