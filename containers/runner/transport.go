package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	connections  = 16 // requests under way at a time
	dialPatience = 10 * time.Second
	silence      = 60 * time.Second // a connection on which nothing moves for so long is given up
)

// newTransport speaks HTTP/1.1 as S3 does, never unpacks what is packed, and gives up on a connection that is silent.
// roots: nil = the system's.
func newTransport(roots *x509.CertPool) *http.Transport {
	dialer := &net.Dialer{Timeout: dialPatience}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, place string) (net.Conn, error) {
			connection, err := dialer.DialContext(ctx, network, place)
			if err != nil {
				return nil, err
			}
			return watched{connection}, nil
		},
		TLSClientConfig:     &tls.Config{RootCAs: roots},
		TLSHandshakeTimeout: dialPatience,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 2 * connections,
		IdleConnTimeout:     20 * time.Second,
		WriteBufferSize:     64 << 10,
		ReadBufferSize:      64 << 10,
	}
}

// ownRoots: certificates that the image or the task brings under the name that AWS's tools use, and no others then. nil =
// the system's, and where there are none (a scratch image) those that were built in.
func ownRoots(environment []string) (*x509.CertPool, error) {
	useBuiltInRoots()
	file := variable(environment, "AWS_CA_BUNDLE")
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, wrong("the certificates of AWS_CA_BUNDLE cannot be read: %v", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, wrong("the certificates of AWS_CA_BUNDLE cannot be read: there is none in %s", file)
	}
	return pool, nil
}

// watched puts the end off whenever something moves, in whichever direction.
type watched struct{ net.Conn }

func (w watched) Read(data []byte) (int, error) {
	_ = w.SetReadDeadline(time.Now().Add(silence))
	return w.Conn.Read(data)
}

func (w watched) Write(data []byte) (int, error) {
	_ = w.SetDeadline(time.Now().Add(silence))
	return w.Conn.Write(data)
}
