// Package telemetry shows what holdfast's kits do: as OpenTelemetry metrics and
// spans, as log records, and as a page for whoever is on call.
//
//	stopMetrics, err := telemetry.Metrics{}.Register(kit)  // by OpenTelemetry's global provider
//	stopTraces := telemetry.Traces{}.Attach(kit)           // a span for each call and attempt
//	stopLogs := telemetry.Logs{Logger: slog.Default()}.Attach(kit)
//	mux.Handle("/debug/holdfast", telemetry.Page(kit))     // on an internal address
//
// Each works by itself, on kits that run already, until its stop is called, or the
// page's Close. What they show holds no query value and no user of a URL.
//
// # Metrics
//
// They are read from the kit's own counters when somebody collects them, so that
// a call pays one addition for them. Attribute values come from closed sets: kit
// names, the names of breakers, bulkheads and budgets, method names and route
// patterns (of which each is bounded, see Metrics.MaxKeys and Metrics.MaxMethods), and
// the words below.
//
//	holdfast.breaker.state        up-down  kit, breaker, state    1 for the state that the next call would find, 0 for the others
//	holdfast.breaker.opens        counter  kit, breaker           openings by a rule or a probe
//	holdfast.breaker.probes       counter  kit, breaker, outcome  ends of probes
//	holdfast.breaker.refusals     counter  kit, breaker, cause    refusals by breakers
//	holdfast.breakers             up-down  kit, state             breakers in a state
//	holdfast.shadow.state         up-down  kit, breaker, state    as holdfast.breaker.state, of breakers that refuse nothing
//	holdfast.shadow.opens         counter  kit, breaker           openings that cut nobody off
//	holdfast.shadow.probes        counter  kit, breaker, outcome  ends of what would have been probes
//	holdfast.shadow.refusals      counter  kit, breaker, cause    what they would have refused
//	holdfast.calls                counter  kit, method, result    calls that have returned, by the class of their end
//	holdfast.attempts             counter  kit, method, result    attempts that have ended
//	holdfast.refusals             counter  kit, method, cause     calls that were turned away, and repeats that were not made
//	holdfast.retry.sent           counter  kit, method            repeats, without hedges
//	holdfast.retry.denied         counter  kit, method, cause     of the refusals those of a repeat: the call ended with its last failure
//	holdfast.hedge.sent           counter  kit, method            attempts that were sent while another ran
//	holdfast.hedge.won            counter  kit, method            hedges that had the answer
//	holdfast.failover.sent        counter  kit, method            attempts at another upstream than the one before
//	holdfast.fallback.served      counter  kit, method            calls that got a fallback's answer
//	holdfast.bulkhead.in_use      up-down  kit, bulkhead          permits
//	holdfast.bulkhead.waiting     up-down  kit, bulkhead          attempts in the queue
//	holdfast.bulkhead.limit       up-down  kit, bulkhead          permits there are, as an adaptive limit has it
//	holdfast.store.answering      up-down  kit                    1 while the shared store answers
//	holdfast.store.failures       counter  kit                    commands to it that failed
//	holdfast.store.probes         counter  kit, outcome           those who asked it for a probe: granted, held_elsewhere, unasked (it was silent)
//	holdfast.budget.tokens        up-down  kit, budget            repeats that the budget allows now
//
// Where Metrics.Durations asks for them, or for the attempts' Metrics.AttemptDurations:
//
//	holdfast.call.duration           histogram, s  kit, method, result  to the call's return; in HTTP to the headers
//	holdfast.attempt.duration        histogram, s  kit, method, result  without the wait for a permit; not of streams
//	holdfast.bulkhead.wait.duration  histogram, s  kit, method, result  "ok", or "refused" if no permit came
//
//	holdfast.fallback.age            histogram, s  kit, method, result  of stale answers; result is "stale"
//
// States are closed, open, half_open, forced_open and disabled. What a breaker does
// while its Config.Shadow is set is in the series of shadows alone, so that an alert
// on a breaker that is open is of one that refuses calls. A breaker that has
// always been closed is reported in that state alone; one that is no longer there,
// because it was idle and others needed its place, is not reported any more, and
// its counters go on in the breaker "evicted", so that no sum falls. Bulkheads and
// budgets are reported while they are in use: a bulkhead with a permit out or an
// attempt waiting, a budget that is not full.
//
// Of more breakers than Metrics.MaxKeys those in trouble have states of their own. The
// counters of a breaker that has counted something have a series of their own for as
// long as it lives, and nothing else takes their place, so that no series falls: what
// breakers without one count is counted in "other", and stays there. One that gets a
// series later begins it at 0.
package telemetry
