package answers

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Entry is a copy of an answer.
type Entry struct {
	Age     time.Duration // since the dependency gave the answer
	Fresh   time.Duration // the age from which it is called stale
	Limit   time.Duration // the age from which it is not given any more
	Payload []byte        // the answer, in the adapter's own form
}

// The form of an entry in a store: a version, the key, who wrote it and when by
// both clocks, the durations in nanoseconds, the payload. The key keeps a store
// that mixes up its values from answering for another request.
const (
	entryVersion = 1
	stampSize    = 15 // of time.Time.AppendBinary for a time in UTC
	entryHead    = 1 + len(Key{}) + len(process{}) + 8 + stampSize + 3*8
)

// process tells this process from others whose entries a store may hold.
type process [16]byte

// encode returns the form of an entry written now, which is as old as it says.
func (e Entry) encode(k Key, by process, now mono.Instant) []byte {
	b := make([]byte, 0, entryHead+len(e.Payload))
	b = append(b, entryVersion)
	b = append(b, k[:]...)
	b = append(b, by[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(now.Pack()))
	b, _ = time.Now().UTC().AppendBinary(b) // fails for odd time zones alone
	for _, d := range [...]time.Duration{e.Age, e.Fresh, e.Limit} {
		b = binary.BigEndian.AppendUint64(b, uint64(d))
	}
	return append(b, e.Payload...)
}

var errBroken = errors.New("fallback: the store holds something else under this key")

// decode reads an entry as of now. Its payload shares b.
//
// How long ago it was written is a difference on the monotonic clock. An entry of
// another process has a wall clock only: a time that lies ahead proves that the
// clocks differ, and so nothing can be said of its age.
func decode(b []byte, k Key, own process, now mono.Instant) (e Entry, err error) {
	if len(b) < entryHead || b[0] != entryVersion || Key(b[1:]) != k {
		return Entry{}, errBroken
	}
	b = b[1+len(k):]
	by := process(b)
	b = b[len(by):]
	since := now.Sub(mono.Unpack(int64(binary.BigEndian.Uint64(b))))
	b = b[8:]
	if by != own {
		var written time.Time
		if err := written.UnmarshalBinary(b[:stampSize]); err != nil {
			return Entry{}, errBroken
		}
		since = time.Since(written)
	}
	b = b[stampSize:]
	for _, d := range [...]*time.Duration{&e.Age, &e.Fresh, &e.Limit} {
		*d = time.Duration(binary.BigEndian.Uint64(b))
		b = b[8:]
		if *d < 0 {
			return Entry{}, errBroken
		}
	}
	e.Payload = b
	if e.Age += since; since < 0 || e.Age < 0 {
		return Entry{}, errBroken
	}
	return e, nil
}
