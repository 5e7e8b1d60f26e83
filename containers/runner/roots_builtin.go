//go:build roots

package main

import (
	"crypto/x509"
	_ "embed"
	"sync"
)

// Mozilla's, from the package certifi; build.sh puts the file here.
//
//go:embed roots.pem
var builtInRoots []byte

// useBuiltInRoots where the image has no certificates.
var useBuiltInRoots = sync.OnceFunc(func() {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(builtInRoots)
	x509.SetFallbackRoots(pool)
})
