// Package shop is the dependency that the examples call: one small catalog,
// served over gRPC ([GRPC], by the service shop.v1.Catalog) and over HTTP
// ([HTTP]). Either can be made to fall silent, and counts what reaches it.
package shop
