// Package answers has what adapters need to answer in a dependency's place, by package
// fallback's policies: a [Cache] of copies of its answers, and the marks that tell what
// is given from an answer of its own.
package answers
