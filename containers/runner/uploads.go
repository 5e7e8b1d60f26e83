package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	multipartFrom    = 64 << 20 // larger files are sent in parts
	smallestPart     = 16 << 20
	mostParts        = 10_000 // S3's limit
	partsAtATime     = 4
	abortPatience    = 5 * time.Second
	conditionMissing = "If-None-Match"
	conditionSame    = "If-Match"
)

// upload is one file on its way to its object. about: headers that the object keeps; only: the condition
// under which it is written, nil = always.
type upload struct {
	store *store
	at    address
	file  *os.File
	size  int64
	about map[string]string
	only  map[string]string
	what  string // it is called in sentences
}

// putAs sends a file and replaces what was there.
func (s *store) putAs(ctx context.Context, what string, at address, from left) error {
	return upload{store: s, at: at, size: from.size, what: what}.send(ctx, from)
}

// put sends a file. errAlreadyThere: the condition did not hold, and what is there stays.
func (s *store) put(ctx context.Context, at address, from left, about, only map[string]string) error {
	return upload{store: s, at: at, size: from.size, about: about, only: only, what: "the result"}.send(ctx, from)
}

func (u upload) send(ctx context.Context, from left) error {
	file, err := os.Open(from.path)
	if err != nil {
		return err
	}
	defer file.Close()
	u.file = file
	if u.size > multipartFrom {
		return u.inParts(ctx)
	}
	headers := map[string]string{}
	maps.Copy(headers, u.about)
	maps.Copy(headers, u.only)
	asked, err := u.section(0, u.size)
	if err != nil {
		return err
	}
	asked.headers = headers
	return u.store.do(ctx, func() request { return asked }, ignored)
}

func ignored(*http.Response) error { return nil }

func (u upload) request(method string, values map[string]string) request {
	return request{method: method, at: u.at, query: values, subject: u.what + " " + u.at.String(), verb: "written"}
}

// section is a PUT of a piece of the file. It is read twice, first for its digest, and never held in memory.
func (u upload) section(from, length int64) (request, error) {
	digest := sha256.New()
	copied, err := io.Copy(digest, io.NewSectionReader(u.file, from, length))
	if err != nil {
		return request{}, err
	}
	if copied != length {
		return request{}, wrong("the file %s of %s became shorter while it was uploaded", u.file.Name(), u.what)
	}
	asked := u.request(http.MethodPut, nil)
	asked.reader = func() io.Reader { return io.NewSectionReader(u.file, from, length) }
	asked.length, asked.digest = length, hex.EncodeToString(digest.Sum(nil))
	return asked, nil
}

// withText has a small body.
func withText(asked request, text []byte) request {
	asked.reader = func() io.Reader { return bytes.NewReader(text) }
	asked.length, asked.digest = int64(len(text)), hexDigest(text)
	return asked
}

// inParts begins again where S3 finds a conflict with another upload: it may not be completed then, as S3 documents.
func (u upload) inParts(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := u.inPartsOnce(ctx)
		if !errors.Is(err, errConflict) {
			return err
		}
		if attempt >= u.store.attempts {
			return temporary("%s %s could not be written: %v", u.what, u.at, err)
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
}

func (u upload) inPartsOnce(ctx context.Context) error {
	var started struct {
		UploadID string `xml:"UploadId"`
	}
	asked := u.request(http.MethodPost, map[string]string{"uploads": ""})
	asked.headers = u.about
	err := u.store.do(ctx, func() request { return asked }, func(response *http.Response) error {
		return xml.NewDecoder(response.Body).Decode(&started)
	})
	if err != nil {
		return err
	}
	tags, err := u.parts(ctx, started.UploadID)
	if err == nil {
		err = u.complete(ctx, started.UploadID, tags)
	}
	if err != nil {
		u.abort(ctx, started.UploadID)
	}
	return err
}

// parts sends all of them; their ETags in order.
func (u upload) parts(ctx context.Context, id string) ([]string, error) {
	length := max(smallestPart, ((u.size+mostParts-1)/mostParts+1<<20-1)>>20<<20)
	tags := make([]string, (u.size+length-1)/length)
	sending := newGroup(ctx, partsAtATime)
	for number := range tags {
		sending.start(func() error {
			from := int64(number) * length
			asked, err := u.section(from, min(length, u.size-from))
			if err != nil {
				return err
			}
			asked.query = map[string]string{"partNumber": strconv.Itoa(number + 1), "uploadId": id}
			return u.store.do(sending.context, func() request { return asked }, func(response *http.Response) error {
				tags[number] = response.Header.Get("ETag")
				return nil
			})
		})
	}
	return tags, sending.wait()
}

func (u upload) complete(ctx context.Context, id string, tags []string) error {
	var text strings.Builder
	text.WriteString("<CompleteMultipartUpload>")
	for number, tag := range tags {
		var shown bytes.Buffer
		_ = xml.EscapeText(&shown, []byte(tag))
		fmt.Fprintf(&text, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", number+1, &shown)
	}
	text.WriteString("</CompleteMultipartUpload>")
	asked := withText(u.request(http.MethodPost, map[string]string{"uploadId": id}), []byte(text.String()))
	asked.headers, asked.isCompletion = map[string]string{"Content-Type": "application/xml"}, true
	maps.Copy(asked.headers, u.only)
	tries := 0
	err := u.store.do(ctx, func() request { tries++; return asked }, completed)
	if err != nil && tries > 1 && !errors.Is(err, errAlreadyThere) && u.isThere(ctx) {
		return nil // an earlier try did it, and its answer was lost
	}
	return err
}

// completed: S3 answers 200 early, sends spaces while it works, and may then report a fault. An answer that breaks off
// says nothing.
func completed(response *http.Response) error {
	var answer struct {
		XMLName xml.Name
		Code    string
		Message string
	}
	if err := xml.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&answer); err != nil {
		return passing("the answer broke off: %v", err)
	}
	if answer.XMLName.Local != "CompleteMultipartUploadResult" {
		return passing("%s", strings.TrimSpace(answer.Code+" "+answer.Message))
	}
	return nil
}

func (u upload) isThere(ctx context.Context) bool {
	var size int64 = -1
	asked := u.request(http.MethodHead, nil)
	err := u.store.do(ctx, func() request { return asked }, func(response *http.Response) error {
		size = response.ContentLength
		return nil
	})
	return err == nil && (u.only[conditionMissing] != "" || size == u.size)
}

// abort even when the runner is being stopped: what was sent would be paid for until the bucket's rule removes it.
func (u upload) abort(ctx context.Context, id string) {
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortPatience)
	defer cancel()
	asked := u.request(http.MethodDelete, map[string]string{"uploadId": id})
	_ = u.store.do(brief, func() request { return asked }, ignored)
}
