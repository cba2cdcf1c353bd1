// Package httpmw puts a kit into an http.Client: [Transport] is an
// http.RoundTripper that runs every request as
//
//	Fallback( Retry( CircuitBreaker( Timeout( Bulkhead( request ) ) ) ) )
//
//	client := &http.Client{Transport: httpmw.NewTransport(nil, kit)}
//
// # Policies
//
// The keys of the kit's table are patterns in the syntax of http.ServeMux, such
// as "GET /items/{id}", "api.example.com/" or "/". The most particular pattern
// that matches a request applies; a layer that it leaves nil comes from the next
// broader pattern, and at last from Default. A pattern with a host ranks before
// every one without. The breaker, bulkhead and budget of a target are named for
// scheme, host and port, and for the pattern that set them, never for a path.
//
// In hooks, metrics and spans a request goes by its pattern; where none matches by its
// method alone, GET say, and by OTHER if that is none of RFC 9110 or 5789. What
// holdfast.WithOverride and holdfast.WithResource put into a request's context holds
// for that request.
//
// # What is repeated
//
// GET, HEAD, OPTIONS and TRACE are reads, PUT and DELETE are idempotent, POST and
// PATCH are neither (RFC 9110, section 9.2). An Idempotency-Key header that is not
// empty makes any request repeatable, as it does for net/http; so does the Safety of a
// pattern that names the method. Any request may be repeated of which provably nothing
// was sent.
//
// A body with GetBody, which http.NewRequest sets for readers in memory, is
// opened anew for each attempt. Of one without, up to 64 KiB are kept while they
// are sent ([WithBufferLimit]); a longer one gets a single attempt. A
// *bytes.Reader, *bytes.Buffer or *strings.Reader reaches the base as one of
// these, if it is a string or not longer than 4 KiB and its GetBody is
// http.NewRequest's or none: net/http sends it together with the headers.
//
// # What is hedged
//
// A read or an idempotent request is hedged if the policy's Retry says so: while
// the first attempt is unanswered another is sent, and the first acceptable answer
// wins. An answer counts when its headers are there, or its first byte if
// FirstMessage is set. The winner's body lives until it is closed; the others are
// cancelled, and RoundTrip returns when their transports have. A key alone allows
// no hedge. Neither does a body without GetBody, unless it is in memory as above, and
// the bodies that GetBody makes are read beside each other: it must not hand out one shared file. An attempt
// hook, a classifier and the base transport may run for several attempts of one
// call at the same time.
//
// # Several upstreams
//
// [Failover] returns a Transport that sends each request to the first of several base
// URLs that can answer it; docs/failover.md tells what moves on and when.
//
// # What a limit bounds
//
// Total and Attempt run to the response headers. FirstMessage runs to the first
// byte of the body; if it is set, RoundTrip returns when that byte is there. Idle
// bounds each Read of the rest, in the standard policy that of a body whose length
// is known; how long all of it takes is bounded by the request's context alone. The
// connection of an upgrade (101) has no limit.
//
// # What an attempt holds, and until when
//
// The bulkhead's permit and the attempt's context live until the response's body
// has been read to its end or closed, so a body must be closed, as ever. A status
// that says the attempt failed is booked with the breaker at once; a good one
// when its body ends, as a failure if that breaks. A body that nobody closes ends
// with the request's context, and if that can never end, when it is collected.
//
// A failed response that is repeated is read into memory before the wait, up to
// 64 KiB within 250 ms, which frees its connection and permit.
//
// # What is answered while the dependency is down
//
// A read may be answered with an earlier response, if the policy's Fallback says so:
// see package fallback and docs/fallback.md. Such a response has the header fields Age
// and Cache-Status, the latter "holdfast; hit; ...". It is kept when its body was read
// to the end, and then found by method, URL, Host, what Vary names and the policy's
// Identity; the copies are the Transport's own ([WithCacheScope] shares them). A body
// that a request has belongs to it if it is in memory and at most 64 KiB long; with
// any other, or with Range, the request has no part in the cache.
//
// # What comes back
//
// The last response comes back whatever its status, readable from its first
// byte. If the call ended short of its attempts, [Stopped] tells why. Where there
// is no response the error is the base transport's, or the kit's: it matches
// breaker.ErrOpen, bulkhead.ErrFull, timeout.ErrExceeded, timeout.ErrFloor or one of
// package retry's, also through the *url.Error of http.Client.
//
// What the kit has turned away, or a limit or the caller's deadline has ended, is a
// *fallback.WriteError if the request is not ReadOnly: it says whether the request may
// have taken effect.
//
// The response to an upgrade (101) keeps its Write and CloseWrite, and holds its
// permit until it is closed.
//
// # Other transports
//
// A transport given to [New] as its base is called once per attempt, one that wraps
// the [Transport] once per call. So OpenTelemetry's otelhttp makes a span for each
// attempt as the base, with a traceparent of its own, and one for the whole call,
// which ends with the body, around the kit; both at once nest. What signs requests
// belongs behind the kit, or into an attempt hook.
package httpmw
