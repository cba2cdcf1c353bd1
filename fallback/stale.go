package fallback

import (
	"context"
	"crypto/rand"
	"net/textproto"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/check"
)

// Stale keeps the good answers to reads, and answers with them when the
// dependency does not. Only an answer of the dependency's own is stored, only
// when it has come whole, and it is read only after a call has failed: as long as
// the dependency answers, nobody sees the copy. It is for HTTP requests and unary
// RPCs; holdfast.Do and streams have none.
//
// The copies belong to one transport or connection, even where several share a
// policy and its store: their certificates and credentials may differ.
type Stale struct {
	// Store is where the copies are; see package fallback/memory. Required.
	Store Store

	// Identity names whose answer it is: for every two callers who may see
	// different things it must return different names. It is given the call's
	// context and what is sent. An empty name means that nobody knows: such a
	// call neither fills the cache nor is answered from it. [SharedByAll] is the
	// Identity of answers that are everybody's. Required.
	//
	// Where names come to mean something else, as after an update from tenants to
	// users, they must be others: "user:7" and not "7" again.
	//
	// It sees what the caller sent, not what a base transport, an attempt hook, or
	// an interceptor or a connection's credentials behind the kit add.
	Identity func(ctx context.Context, r Request) string

	// Fresh is the age from which an answer is called stale, if it does not say
	// so itself. Zero means at once.
	Fresh time.Duration

	// MaxStale is the age, from when the dependency was asked for the answer, from
	// which it is not given any more, and the caller gets the error. The answer
	// itself may say less. Zero is 5 minutes.
	MaxStale time.Duration

	// MaxBody is the size in bytes up to which a body or reply is stored. While a
	// body is read, that much of it is kept in memory. Zero is 1 MiB.
	MaxBody int

	// StoreTimeout bounds each access of a Store that is not [InProcess]. Zero is
	// 100 ms.
	StoreTimeout time.Duration

	// StoreFailed is told of each access that failed or took too long. It is
	// called on any goroutine. Nil means that nobody is.
	StoreFailed func(error)
}

// Request is what is sent with a call.
type Request struct {
	Info call.Info

	// Header is the request's header, or the outgoing metadata of an RPC. It is
	// not to be changed.
	Header map[string][]string
}

// Get returns the first value of a header field or of a key of metadata, "" if
// there is none. Upper and lower case are the same.
func (r Request) Get(name string) string {
	for _, key := range [...]string{textproto.CanonicalMIMEHeaderKey(name), strings.ToLower(name)} {
		if values := r.Header[key]; len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// everybody is a name that nobody can have.
var everybody = rand.Text()

// SharedByAll is the Identity of answers that do not depend on who asks. A request
// with credentials of its own (Authorization, Cookie, an API key, per-RPC
// credentials) then neither fills the cache nor is answered from it, and the header
// says nothing else about whose answer it is. An Identity may return it for some
// requests.
func SharedByAll(context.Context, Request) string { return everybody }

// Defaults of [Stale].
const (
	defaultMaxStale     = 5 * time.Minute
	defaultMaxBody      = 1 << 20
	defaultStoreTimeout = 100 * time.Millisecond
)

// WithDefaults returns a copy in which every zero field has its documented
// default.
func (s Stale) WithDefaults() Stale {
	if s.MaxStale == 0 {
		s.MaxStale = defaultMaxStale
	}
	if s.MaxBody == 0 {
		s.MaxBody = defaultMaxBody
	}
	if s.StoreTimeout == 0 {
		s.StoreTimeout = defaultStoreTimeout
	}
	return s
}

func (s Stale) check() check.Faults {
	var faults check.Faults
	if s.Store == nil {
		faults.Add("Store", nil, "is missing; package fallback/memory has one")
	}
	if s.Identity == nil {
		faults.Add("Identity", nil, "is missing: a function that names whose answer it is, or fallback.SharedByAll")
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Fresh", s.Fresh}, {"MaxStale", s.MaxStale}, {"StoreTimeout", s.StoreTimeout}} {
		if d.value < 0 {
			faults.Add(d.field, d.value, "must not be negative")
		}
	}
	if s.MaxBody < 0 {
		faults.Add("MaxBody", s.MaxBody, "must not be negative")
	}
	if most := s.WithDefaults().MaxStale; s.Fresh > most && s.MaxStale >= 0 {
		faults.Add("Fresh", s.Fresh, "must not be more than MaxStale = %v", most)
	}
	return faults
}
