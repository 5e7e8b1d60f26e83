package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// largestDocument is more than any job has; what is larger is no job.
const largestDocument = 64 << 20

// read a small object, whole. what: it is called in sentences.
func (s *store) read(ctx context.Context, at address, what string) (text []byte, err error) {
	made := func() request {
		return request{method: http.MethodGet, at: at, subject: what + " " + at.String(), verb: "read"}
	}
	err = s.do(ctx, made, func(response *http.Response) error {
		text, err = io.ReadAll(io.LimitReader(response.Body, largestDocument+1))
		if len(text) > largestDocument {
			return wrong("%s %s is larger than %d bytes", what, at, largestDocument)
		}
		return err
	})
	return text, err
}

// download an object into a file. size: what it has to have; -1 = any. A try that breaks off resumes where it stopped.
func (s *store) download(ctx context.Context, at address, what, path string, size int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	under := &download{at: at, what: what, file: file, size: size}
	err = s.do(ctx, under.request, under.take)
	if errors.Is(err, errAlreadyThere) { // it was replaced in between
		under.have = 0
		err = s.do(ctx, under.request, under.take)
	}
	if errors.Is(err, errAlreadyThere) {
		return temporary("%s %s changes while it is read", what, at)
	}
	if err != nil {
		return err
	}
	return file.Close()
}

type download struct {
	at   address
	what string
	file *os.File
	size int64
	have int64  // bytes in the file
	etag string // of the object that they are from
}

func (d *download) request() request {
	asked := request{method: http.MethodGet, at: d.at, subject: d.what + " " + d.at.String(), verb: "read"}
	if d.have > 0 {
		asked.headers = map[string]string{"Range": fmt.Sprintf("bytes=%d-", d.have), "If-Match": d.etag}
	}
	return asked
}

func (d *download) take(response *http.Response) error {
	goesOn := strings.HasPrefix(response.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", d.have))
	if response.StatusCode != http.StatusPartialContent || !goesOn {
		d.have = 0
	}
	if whole := d.have + response.ContentLength; d.size >= 0 && response.ContentLength >= 0 && whole != d.size {
		return wrong("%s %s has %d bytes, and the job says %d", d.what, d.at, whole, d.size)
	}
	d.etag = response.Header.Get("ETag")
	if _, err := d.file.Seek(d.have, io.SeekStart); err != nil {
		return failureOf(err)
	}
	if err := d.file.Truncate(d.have); err != nil {
		return failureOf(err)
	}
	piece := make([]byte, 128<<10)
	for {
		count, ended := response.Body.Read(piece)
		written, err := d.file.Write(piece[:count])
		d.have += int64(written)
		if err != nil {
			return failureOf(err)
		}
		if ended == io.EOF {
			return nil
		}
		if ended != nil {
			return ended
		}
	}
}

// below calls `each` with the key of every object of a prefix, in the order of their keys.
func (s *store) below(ctx context.Context, at address, what string, each func(key string) error) error {
	token := ""
	for {
		made := func() request {
			asked := map[string]string{"list-type": "2", "prefix": at.key, "encoding-type": "url"}
			if token != "" {
				asked["continuation-token"] = token
			}
			subject := what + " " + at.String()
			return request{method: http.MethodGet, at: address{at.bucket, ""}, query: asked, subject: subject, verb: "listed"}
		}
		var page struct {
			IsTruncated           bool
			NextContinuationToken string
			EncodingType          string
			Contents              []struct{ Key string }
		}
		err := s.do(ctx, made, func(response *http.Response) error {
			page.Contents = nil
			return xml.NewDecoder(response.Body).Decode(&page)
		})
		if err != nil {
			return err
		}
		for _, found := range page.Contents {
			key := found.Key
			if page.EncodingType == "url" {
				if key, err = url.QueryUnescape(key); err != nil {
					return temporary("%s %s could not be listed: %v", what, at, err)
				}
			}
			if err := each(key); err != nil {
				return err
			}
		}
		if !page.IsTruncated || page.NextContinuationToken == "" {
			return nil
		}
		token = page.NextContinuationToken
	}
}
