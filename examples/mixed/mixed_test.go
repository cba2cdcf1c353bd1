package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the program shows, on real sockets: the silence of one dependency costs the page
// what it can do without, and once its circuit is open nothing is sent to it.
func TestOneDependencyIsSilent(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), nil, &out, io.Discard))
	require.Regexp(t, `^all is well +\d+ ms, sent 1 \+ 1: Storm lamp, reviews: 200 OK \d+ bytes
(the reviews are silent +\d+ ms, sent 1 \+ [12]: Storm lamp, reviews: 204 No Content 0 bytes
)+and their circuit is open +\d+ ms, sent 1 \+ 0: Storm lamp, reviews: 204 No Content 0 bytes
(the catalog is silent +\d+ ms, sent [12] \+ 0: no item: .* last failure: timeout: .*
)+and its circuit is open +\d+ ms, sent 0 \+ 0: no item: breaker: \S+ is open
all is well again +\d+ ms, sent 1 \+ 1: Storm lamp, reviews: 200 OK \d+ bytes
$`, out.String())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, run(ctx, nil, io.Discard, io.Discard), context.Canceled)
	require.ErrorContains(t, run(t.Context(), []string{"more"}, io.Discard, io.Discard), `unexpected argument "more"`)
}
