//go:build !roots

package main

// useBuiltInRoots: this build has no certificates of its own (build.sh brings them, with the tag `roots`).
func useBuiltInRoots() {}
