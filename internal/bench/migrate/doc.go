// Package migrate holds the before and after of the migration notes, so that
// both compile and do the same work.
package migrate
