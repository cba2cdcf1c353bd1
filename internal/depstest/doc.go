// Package depstest keeps the import walls of this module: its test reads every
// Go file and fails where a package imports what it must not.
//
// The files are parsed, not built, so that a file for another system or behind
// a build tag counts like any other.
package depstest
