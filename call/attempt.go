package call

// Attempt is one try of a call that is about to be sent, as a hook sees it.
type Attempt struct {
	Info   Info
	Wire   string // "grpc", "http", or "do" where the wire is not the kit's
	Number int    // in the call, from 1
	Hedge  bool   // sent while another one runs
	Probe  bool   // of a half-open breaker

	// Header is what this attempt alone sends beside the request: HTTP headers or
	// gRPC metadata. It is nil where the wire is not the kit's. It is the hook's
	// only until that returns.
	Header Header
}

// Header is the outgoing header of one attempt. Keys are compared as the wire does
// it, without regard to case.
type Header interface {
	Get(key string) string // the first value, "" if there is none
	Set(key, value string) // in place of all values
	Keys() []string
}
