// Package shopv1 is the generated code of shop.proto.
//
// The generated files are part of the repository, so that it builds with Go
// alone. To make them anew: protoc 3.21 or later, and the two plugins on the
// PATH,
//
//	go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
//	go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
//	go generate ./examples/internal/shop/shopv1
package shopv1

//go:generate protoc -I../.. --go_out=../.. --go_opt=paths=source_relative --go-grpc_out=../.. --go-grpc_opt=paths=source_relative shop/shopv1/shop.proto
