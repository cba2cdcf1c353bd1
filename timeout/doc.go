// Package timeout limits how long a call and each of its attempts may take, and
// says afterwards who ended an attempt: the kit's limit, the caller's deadline
// or the caller's cancellation.
package timeout
