// Package redisstore shares the state of breakers on Redis or Valkey: it is a
// [breaker.Store], for [breaker.Sharing] and holdfast.Config.Shared.
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	store, err := redisstore.New(client, redisstore.Options{})
//	...
//	kit, err := holdfast.New(holdfast.Config{Name: "catalog", Shared: &breaker.Sharing{Store: store}})
//
// The client is the application's: a single server, sentinel or a cluster; the
// server Redis 7.0 or newer, or Valkey. ContextTimeoutEnabled must be set. A
// client that retries (MaxRetries) or dials for long makes nothing worse: the
// fleet stops waiting after its Timeout. Commands are EVALSHA, EVAL, SUBSCRIBE
// and what the scripts call: TIME, HGET, HMGET, HSET, HDEL, HLEN,
// ZADD, ZREM, ZCARD, ZRANGE, ZRANGEBYSCORE, PTTL, PEXPIRE, EXISTS, DEL, PUBLISH.
//
// # What is stored
//
// Two keys and a channel for each space, with one hash tag, and so one slot in a
// cluster:
//
//	{holdfast:catalog}:v1:records   a hash with a record for each breaker in trouble
//	{holdfast:catalog}:v1:changes   a sorted set of their names by last change
//	{holdfast:catalog}:v1:told      what Push listens to
//
// Both keys expire with the last record in them; a record expires MaxCooldown,
// the window, two probe timeouts and a minute after its cooldown, one that is
// forced open after a week without a worker. While nothing is in trouble there is
// no key at all. What is of another type, version or form counts as not there and
// is written over.
//
// All times are the server's. If its clock is set forward, cooldowns and locks end
// early; if it is set back, none lasts longer than its own length from then on.
//
// # What it costs
//
// A worker, which is one kit in one process, sends
//
//   - one refresh in every 2 s while its breakers are in use, whatever their
//     number, and none while they are not;
//   - for each breaker that opens one command, and one more for each probe's end;
//   - for each open breaker that it has calls for at most one command in a
//     cooldown: the first call after it asks for the lock.
//
// So with W workers, K breakers open and calls for each of them in every worker,
// it is W/2 refreshes a second, and in an outage W*K/30 asks besides, with the
// standard MaxCooldown of 30 s, and 2*K/30 changes. For K = 1,000 in commands a
// second:
//
//	workers   healthy   in an outage of all 1,000
//	     10         5        5 +     333 +  67
//	  1,000       500      500 +  33,333 +  67
//	 10,000     5,000    5,000 + 333,333 +  67
//
// What a command costs the one thread of the server was measured as the server
// accounts for it (usec_per_call of evalsha in INFO commandstats) by
// BenchmarkCommands, Redis 7.0.15 on one of two shared cores of a busy virtual
// machine: 12 us a refresh when nothing is open and 53 us when 1,000 breakers
// are, 45 us an ask that is turned down, as is an opening that joins. A refresh
// brings what has changed since the last one, up to 500 records a command: in an
// outage of all 1,000 breakers that is some 70 records of 150 bytes.
//
// One thread does some 80,000 such refreshes a second while all is well: 10,000
// workers use a sixteenth of it. In an outage it is the asks that count, and one
// thread does some 20,000 of them a second: with 1,000 breakers open at once and
// calls for all of them everywhere a single server ends at about 600 workers, with
// 100 breakers at about 6,000. Beyond that answers take longer than Timeout; the
// breakers of those workers then probe by their own knowledge, and nothing else
// is lost. What helps, in this order: fewer breakers (a breaker for each target
// is one for each dependency), a longer MaxCooldown, and a space for each
// dependency (a kit has its own) on a cluster, whose nodes share the spaces.
//
// With Push each opening, closing and order is told to every worker, and each
// reads it: W deliveries and W refreshes for a change of state, at most five
// refreshes a second and worker. A probe that fails is such a change, so with
// 1,000 breakers in an outage they are refreshed five times a second and not
// once in two: 10 * the first column. Push is for fleets of hundreds.
package redisstore
