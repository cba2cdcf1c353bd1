package grpcmw

import "google.golang.org/grpc"

// seek makes an attempt one that finds the server again, for a half-open
// breaker's probe. While dials fail, gRPC dials ever more rarely and ends RPCs at
// once with the last dial's error: a probe would learn of that error, and of
// nothing else, long after the server is back. So a probe has the connection dial
// now, and waits for it, within its limit. For other attempts that would be a
// dial each.
func seek(cc *grpc.ClientConn, pass []grpc.CallOption) []grpc.CallOption {
	if cc != nil {
		cc.ResetConnectBackoff()
	}
	// The slice may be shared: nobody may write behind its end.
	return append(pass[:len(pass):len(pass)], grpc.WaitForReady(true))
}
