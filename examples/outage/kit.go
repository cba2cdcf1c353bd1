package main

import (
	"errors"

	"github.com/holdfast-go/holdfast"
)

// kitOf returns the kit of a policy file, or that of [Policy] if path is empty.
func kitOf(path string) (*holdfast.Kit, error) {
	if path == "" {
		return holdfast.New(holdfast.Config{Default: Policy()})
	}
	return nil, errors.New("policy files cannot be read yet")
}
