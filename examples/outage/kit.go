package main

import (
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/policyfile"
)

// kitOf returns the kit of a policy file, or that of [Policy] if path is empty. Its
// names are those of the file's wire.
func kitOf(path string) (*holdfast.Kit, error) {
	if path == "" {
		return holdfast.New(holdfast.Config{Default: Policy()})
	}
	file, err := policyfile.LoadFile(path)
	if err != nil {
		return nil, err
	}
	kit, err := holdfast.New(file.Config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// The adapters read the names of methods; nothing is called.
	if file.Wire == "grpc" {
		grpcmw.DialOptions(kit)
	} else {
		httpmw.NewTransport(nil, kit)
	}
	return kit, nil
}
