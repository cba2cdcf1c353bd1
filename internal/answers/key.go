package answers

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"

	"github.com/holdfast-go/holdfast/fallback"
)

// Key names a copy. It is a digest of everything that decides which answer is
// the right one.
type Key [sha256.Size]byte

// String returns the key as a [fallback.Store] sees it.
func (k Key) String() string { return base64.RawURLEncoding.EncodeToString(k[:]) }

// KeyHash makes a [Key] out of fields. Each field goes in with its length, so that
// two lists of fields never look the same.
type KeyHash struct {
	sum hash.Hash

	// Shared says that the answer is everybody's.
	Shared bool
}

// Key begins the key of a call's copy; ok is false if the call has no part in the
// cache, because nobody knows whose answer it is. credentials says that the
// request has some of its own.
func (c *Cache) Key(ctx context.Context, s *fallback.Stale, r fallback.Request, credentials bool) (h KeyHash, ok bool) {
	owner, ok := owner(ctx, s, r, credentials)
	if !ok {
		return KeyHash{}, false
	}
	h = KeyHash{sha256.New(), owner == everybodys}
	h.Add(c.scope, owner, r.Info.Target, r.Info.Resource)
	return h, true
}

// Add adds fields.
func (h KeyHash) Add(fields ...string) {
	for _, f := range fields {
		h.length(len(f))
		h.sum.Write([]byte(f))
	}
}

// AddBytes adds a field.
func (h KeyHash) AddBytes(field []byte) {
	h.length(len(field))
	h.sum.Write(field)
}

// AddList adds a field that is itself a list.
func (h KeyHash) AddList(fields []string) {
	h.length(len(fields))
	h.Add(fields...)
}

func (h KeyHash) length(n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.sum.Write(b[:])
}

// Key returns the key of the fields so far.
func (h KeyHash) Key() (k Key) {
	h.sum.Sum(k[:0])
	return k
}

// Part returns the key of a part of what k names, such as a variant.
func (k Key) Part() KeyHash {
	h := KeyHash{sum: sha256.New()}
	h.AddBytes(k[:])
	return h
}

// everybodys is the owner of answers that are shared by all.
const everybodys = "*"

// everybody is what an Identity returns for one of those: a name that nobody can have.
var everybody = fallback.SharedByAll(context.Background(), fallback.Request{})

// owner returns whose answers a call may read and fill, as a part of a key; ok is
// false if nobody knows. credentials says that the call has some of its own.
func owner(ctx context.Context, s *fallback.Stale, r fallback.Request, credentials bool) (owner string, ok bool) {
	switch name := s.Identity(ctx, r); {
	case name == "":
		return "", false
	case name == everybody:
		return everybodys, !credentials
	default:
		return "=" + name, true
	}
}
