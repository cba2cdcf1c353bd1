// Package interop runs the kit with what others have written: gRPC's own
// interoperability tests, OpenTelemetry's instrumentation, the interceptors of
// go-grpc-middleware. It is a module of its own, so that none of them comes to the
// kit's users:
//
//	cd internal/interop && go test ./...
package interop
