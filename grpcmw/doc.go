// Package grpcmw puts a holdfast kit into a gRPC client:
//
//	cc, err := grpc.NewClient(target, append(grpcmw.DialOptions(kit), creds)...)
//
// Every RPC of the connection then runs under the policy of its method. A table
// names a method "/pkg.Service/Method", with or without the leading slash, and a
// whole service "pkg.Service". A method's own entry comes before its service's,
// and that before Config.Default, in whatever order they are written.
//
// # What is protected
//
// A unary RPC has all five layers. One of the kit's limits is the deadline that the
// server is told.
//
// A stream has all but the fallback. Attempt bounds the opening of one attempt and
// Total all openings; they leave a stream alone once it is open. FirstMessage, if
// it is set, bounds the time to an attempt's first message, and Total all of them
// then; it runs on while the caller does not read, and if it passes in such a
// pause the call ends. Idle, if it is set, bounds each wait in RecvMsg; without it
// a message may take as long as the caller's context lasts, and so may a Header.
// While one method waits to repeat a stream, the others wait with it.
//
// An attempt at a stream is booked once, from its final status: one that dies half
// way is a failure, one that the caller gives up is neither. Its permit is given
// back at its end, which is the first of: io.EOF or an error from RecvMsg, the
// only message of a server that sends one, an error other than io.EOF from SendMsg
// or CloseSend, a Header without metadata, the end of the caller's context, the
// closing of the connection. A stream that nobody reads to its end keeps its
// permit until then; if its context can never end, until the collector finds it.
// An interceptor behind this one that does not pass the call options on hides the
// last two ends: a stream that is dropped unread keeps its permit then.
//
// # What may be repeated
//
// gRPC does not say what an RPC does to the server. A method is ReadOnly or
// Idempotent if the idempotency_level in its registered descriptor says so, or
// its own entry or an override does. The calls of any other get one attempt,
// and further ones only if the first provably never left: no connection took it,
// or it met, twice, one that the server was closing. A stream that the server has
// refused, with REFUSED_STREAM, gRPC sends once more by itself; if that is refused
// too it counts as sent. Metadata "idempotency-key" allows repeats as well.
// Kit.Explain says what holds for a method, and why.
//
// A stream is opened again, inside RecvMsg or Header, as long as nothing was
// delivered: no message and no header. Where the client sends a stream it must not
// have sent a message either; a single request is kept until the first message is
// there, and sent again, so that it must not be changed. Before that Context
// returns the caller's own, for an attempt's ends with it.
//
// A server's "grpc-retry-pushback-ms" in the trailer is obeyed as gRPC proposal A6
// has it: a number of milliseconds is the wait, 0 too, and the back-off begins
// anew after it; anything else, or more than one value, forbids the repeat. Beyond
// Retry.RetryAfterCap the call ends at once.
//
// Each attempt sees the caller's call options. What grpc.Header, grpc.Trailer and
// grpc.Peer show afterwards is the last attempt that was made, or of several beside
// each other the one that the call ended with; they are empty if it found no
// connection. Callbacks of grpc.OnFinish are called once, at the end of the call.
//
// # Probes
//
// While dials fail, gRPC dials ever more rarely, and until the next dial every RPC
// ends with the error of the last: a breaker would not learn for long that the
// server is back. So a probe of a half-open breaker resets that wait, once, and
// waits for the connection, at most Breaker.ProbeTimeout. Other attempts do so
// only if grpc.WaitForReady asks for it.
//
// # Service configs
//
// [FromServiceConfig] turns the service config that a team has already into
// policies, and leaves the rest for gRPC:
//
//	s, err := grpcmw.FromServiceConfig(text)
//	config, err := s.Merge(holdfast.Config{Name: "orders"})
//	kit, err := holdfast.New(config)
//	opts := append(grpcmw.DialOptions(kit), grpc.WithDefaultServiceConfig(s.Connection))
//
// The whole text may be given to gRPC as well: the retries in it are switched off.
// waitForReady and the limits on sizes are gRPC's to keep, which does so for each
// attempt; a policy says nothing about them.
//
// # What is hedged
//
// A unary RPC of a method that is ReadOnly or Idempotent is hedged if the policy's
// Retry says so: while the first attempt is unanswered another is sent, and the
// first acceptable answer wins. Each attempt has a copy of the request and a reply
// of its own; the winner's is moved to the caller's. That takes protobuf messages:
// what other codecs carry is not hedged, and neither are streams. The call returns
// when all its attempts have, those that have lost after being cancelled; an
// interceptor behind the kit must heed its context, and may run for several
// attempts at the same time.
//
// # Several upstreams
//
// [Failover] makes one connection of several: each RPC goes to the first upstream that
// can answer it. docs/failover.md tells what moves on and when.
//
// # What is answered while the dependency is down
//
// A unary RPC of a method that is ReadOnly may be answered with an earlier reply, if
// the policy's Fallback says so: see package fallback and docs/fallback.md. The
// response header is then "age" and "cache-status" alone, the latter "holdfast; hit;
// ...", and there are no trailer and no peer. A reply is found by method, authority,
// the request's bytes and the policy's Identity; the copies are the connection's own
// ([WithCacheScope] shares them). Under fallback.SharedByAll an RPC whose metadata says
// who asks has no part in it; [WithCredentialMetadata] names what else does. All this
// takes protobuf messages. A server's "cache-control" in the header is obeyed.
//
// # What the kit adds to the metadata
//
// "idempotency-key", the same on every attempt, if the policy's Retry makes keys;
// one of the caller's is kept. "grpc-previous-rpc-attempts" on every attempt but
// the first. [WithAttemptHook] sees both, and may add to each attempt's own copy.
// [WithNoRetryMetadata] names what the server forbids a repeat with.
//
// # gRPC's own retries
//
// [DialOptions] switches them off. They happen inside all interceptors, where a
// breaker, a limit and a permit would each cover several attempts and see only
// the last: the order of the layers would be reversed. What gRPC repeats by
// itself in spite of that, once, is an RPC that the server has not processed, so
// that an attempt may be two streams. If the second ends before the request is sent
// again, gRPC loses the status of a unary RPC: it ends with Unavailable then, or
// with Unknown if the server has answered, and counts as sent.
//
// # Errors
//
// Every error has a gRPC status, which status.Code and status.Convert find also
// behind fmt.Errorf and %w, and errors.Is and errors.As find the kit's own:
//
//	breaker.ErrOpen      Unavailable
//	bulkhead.ErrFull     ResourceExhausted
//	timeout.ErrExceeded  DeadlineExceeded
//	timeout.ErrFloor     DeadlineExceeded
//	the caller's end     Canceled or DeadlineExceeded
//	a bad override       Internal
//	an attempt hook's    its own status, or Internal
//
// An error of the server's comes back as it was made, details included. If the
// kit has something to add, such as why there was no further attempt, code and
// details stay those of the last failure.
//
// What the kit has turned away, or a limit or the caller's deadline has ended, is a
// *fallback.WriteError if the method is not ReadOnly: it says whether the RPC may have
// taken effect. So it is for a stream, from its opening and from its methods; one that
// was open may have, whatever was sent on it.
//
// # Other interceptors
//
// The kit's are chained ones: of those given by grpc.WithChainUnaryInterceptor
// and grpc.WithChainStreamInterceptor, the ones before it in the list of dial
// options are called once per call, the ones behind it once per attempt. Those
// given by grpc.WithUnaryInterceptor and grpc.WithStreamInterceptor always stand
// before all chained ones. An interceptor that signs or that counts attempts
// belongs behind the kit, one that logs calls before it. Per-RPC credentials and a
// stats handler, such as that of OpenTelemetry, are gRPC's own: wherever they stand
// in the list, they are asked and told once per attempt, and a span that an
// interceptor before the kit has begun is the parent of all of them.
//
// An interceptor behind the kit must hand on the call options it is given;
// otherwise the kit cannot prove that an RPC was not sent, and takes it for sent.
package grpcmw
