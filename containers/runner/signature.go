package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sort"
	"strings"
	"time"
)

// emptyDigest is the SHA-256 of no bytes.
const emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// sign adds AWS's signature of version 4, as S3 wants it:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html. The path and the query of the URL have
// to be escaped as by `escaped` already. digest: SHA-256 of the body, in hexadecimal.
func sign(r *http.Request, with keys, region, digest string, now time.Time) {
	moment := now.UTC().Format("20060102T150405Z")
	r.Header.Set("X-Amz-Date", moment)
	r.Header.Set("X-Amz-Content-Sha256", digest)
	if with.Token != "" {
		r.Header.Set("X-Amz-Security-Token", with.Token)
	}
	names, headers := signedHeaders(r)
	canonical := strings.Join([]string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, headers, names, digest}, "\n")
	scope := strings.Join([]string{moment[:8], region, "s3", "aws4_request"}, "/")
	text := strings.Join([]string{"AWS4-HMAC-SHA256", moment, scope, hexDigest([]byte(canonical))}, "\n")
	key := []byte("AWS4" + with.SecretAccessKey)
	for _, part := range strings.Split(scope, "/") {
		key = authenticated(key, part)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+with.AccessKeyID+"/"+scope+
		", SignedHeaders="+names+", Signature="+hex.EncodeToString(authenticated(key, text)))
}

// signedHeaders are the names, and the lines of the canonical request.
func signedHeaders(r *http.Request) (string, string) {
	lines := map[string]string{"host": r.URL.Host}
	names := []string{"host"}
	for name, values := range r.Header {
		name = strings.ToLower(name)
		if name == "user-agent" { // proxies change it
			continue
		}
		lines[name] = strings.Join(strings.Fields(strings.Join(values, ",")), " ")
		names = append(names, name)
	}
	sort.Strings(names)
	var text strings.Builder
	for _, name := range names {
		text.WriteString(name + ":" + lines[name] + "\n")
	}
	return strings.Join(names, ";"), text.String()
}

func authenticated(key []byte, text string) []byte {
	code := hmac.New(sha256.New, key)
	code.Write([]byte(text))
	return code.Sum(nil)
}

func hexDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// escaped: every byte but letters, digits and -._~, and but those of `kept`.
func escaped(text, kept string) string {
	const digits = "0123456789ABCDEF"
	var shown strings.Builder
	for at := 0; at < len(text); at++ {
		char := text[at]
		isPlain := 'a' <= char && char <= 'z' || 'A' <= char && char <= 'Z' || '0' <= char && char <= '9'
		if isPlain || strings.IndexByte("-._~"+kept, char) >= 0 {
			shown.WriteByte(char)
		} else {
			shown.WriteByte('%')
			shown.WriteByte(digits[char>>4])
			shown.WriteByte(digits[char&15])
		}
	}
	return shown.String()
}

// query of a URL, in the order of its names, as a signature wants it.
func query(values map[string]string) string {
	parts := make([]string, 0, len(values))
	for name, value := range values {
		parts = append(parts, escaped(name, "")+"="+escaped(value, ""))
	}
	sort.Strings(parts)
	return strings.Join(parts, "&")
}
