// Package policyfile reads the policies of a kit from files in YAML or JSON, writes
// them, and puts changed files in force while the kit runs.
//
//	wire: http # or grpc: how the names of methods are read; this comes first
//	name: catalogue
//	default:
//	  timeout: {total: 5s, attempt: 1s}
//	  breaker: {failure_rate: 0.5, cooldown: 2s}
//	methods:
//	  GET /items/{id}:
//	    retry: {max_attempts: 3, backoff: {base: 20ms}}
//	  POST /orders:
//	    retry: off
//
// The fields are those of holdfast.Policy and the layers' types in lower snake case,
// with their defaults and rules: a layer that is left out is inherited, one that is
// set replaces the inherited one whole, and off switches it off. A fallback is code;
// a file can only say off.
//
// # Form
//
// Durations are texts with units, as time.ParseDuration reads them, without a sign:
// 1m30s, 200ms. Values that are one of a few are words: read_only, two_level,
// decorrelated; none stands for no jitter, no back-off, no budget, and unlimited for
// any number of attempts. A written 0 is refused where it has no meaning of its own:
// leave the field out for its default.
//
// A file is read strictly. Unknown and repeated fields, values of another type and
// empty ones are faults. Of YAML, anchors and aliases are read, and what is read in
// more ways than one is not: numbers in other spellings than those of JSON, yes and
// no for booleans, merge keys, tags, a second document. What begins with a brace is
// JSON. [Schema] is the form as a JSON Schema.
//
// [Load] tells all that is wrong at once, with line, column and the field's path.
package policyfile
