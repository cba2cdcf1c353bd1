package fallback

import (
	"context"
	"time"
)

// Store keeps answers by key. [memory] has one for this process; another may
// keep them in Redis, say, for several.
//
// A store is used by all goroutines at once. It may forget an entry at any time,
// and must not hand out one under another key or after its time to live. Keys are
// 43 characters of the URL-safe base64 alphabet, digests that say nothing of the
// request; a store adds what prefix it likes. A value is not changed after it was
// handed over, by either side.
//
// A store that fails or is slow never makes a call worse: a call waits for it at
// most Stale.StoreTimeout and the caller's context, and only when the call has
// failed already; writing and deleting happen aside, at most 64 accesses at once
// for each transport or connection, and further ones are left out; what reads before
// it writes, for an answer that varies, counts as one; so such a store
// may miss a copy, or the removal of one, and of two writes at the same time either
// may be the last. An access that nobody waits for any more, of a store that does
// not heed its context, ends when the store does.
//
// [memory]: https://pkg.go.dev/github.com/holdfast-go/holdfast/fallback/memory
type Store interface {
	// Get returns the value of a key, nil if there is none. What is found broken
	// or foreign counts as none.
	Get(ctx context.Context, key string) (value []byte, err error)

	// Set stores a value for ttl, in place of an older one.
	Set(ctx context.Context, key string, value []byte, ttl time.Duration) error

	// Delete removes a key; one that is not there is no error.
	Delete(ctx context.Context, key string) error
}

// InProcess is implemented by a [Store] in the memory of the process, which never
// waits for anybody: it is called on the caller's goroutine.
type InProcess interface {
	Store
	InProcess()
}
