//go:build roots

package main

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"testing"
)

// TestMain: the tests of this build run as in an image without certificates.
func TestMain(m *testing.M) {
	empty, _ := os.MkdirTemp("", "no-certificates-")
	os.Setenv("SSL_CERT_FILE", empty+"/none.pem")
	os.Setenv("SSL_CERT_DIR", empty)
	code := m.Run()
	_ = os.RemoveAll(empty)
	os.Exit(code)
}

// S3's certificates lead to these: https://www.amazontrust.com/repository/. China's to DigiCert's.
func TestWhoSignsForS3IsBuiltIn(t *testing.T) {
	missing := map[string]bool{
		"Amazon Root CA 1": true, "Amazon Root CA 2": true, "Amazon Root CA 3": true, "Amazon Root CA 4": true,
		"Starfield Services Root Certificate Authority - G2": true, "DigiCert Global Root G2": true,
	}
	for block, rest := pem.Decode(builtInRoots); block != nil; block, rest = pem.Decode(rest) {
		found, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		delete(missing, found.Subject.CommonName)
	}
	if len(missing) > 0 {
		t.Error(missing)
	}
}

func TestAnImageWithoutCertificatesTrustsThoseThatAreBuiltIn(t *testing.T) {
	roots, err := ownRoots(nil)
	if roots != nil || err != nil { // nil is the system's
		t.Fatal(roots, err)
	}
	trusted, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	wanted := x509.NewCertPool()
	wanted.AppendCertsFromPEM(builtInRoots)
	if !trusted.Equal(wanted) || wanted.Equal(x509.NewCertPool()) {
		t.Error("the system's certificates are others")
	}
}

func TestCertificatesThatAreGivenAreTheOnlyOnes(t *testing.T) {
	block, _ := pem.Decode(builtInRoots)
	file := t.TempDir() + "/one.pem"
	_ = os.WriteFile(file, pem.EncodeToMemory(block), 0o600)
	roots, err := ownRoots([]string{"AWS_CA_BUNDLE=" + file})
	wanted := x509.NewCertPool()
	wanted.AppendCertsFromPEM(pem.EncodeToMemory(block))
	if err != nil || !roots.Equal(wanted) {
		t.Error(err)
	}
}
