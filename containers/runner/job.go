package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

const (
	kindProgram = "program"
	kindWheel   = "wheel"
)

// archive is a .tar.gz or an uploaded folder (program), or a wheel. sha256 in hexadecimal, size in bytes.
type archive struct {
	at     address
	sha256 string
	size   int64
	kind   string
}

func (a archive) isInChunks() bool { return folderKey.MatchString(a.at.key) }

// job is the document that says which archives a program is made of.
type job struct {
	archives  []archive
	setup     string // a shell's text; "" = none
	mostFiles int64
	mostBytes int64
}

// noJob has what holds for a task without a document, and for what a document does not say.
func noJob() job { return job{mostFiles: 10_000, mostBytes: 50 << 30} }

func (j job) has(kind string) bool {
	for _, each := range j.archives {
		if each.kind == kind {
			return true
		}
	}
	return false
}

// jobFrom reads the document; members that it does not know are left to later versions.
func jobFrom(text []byte, at string) (job, error) {
	read, err := readJob(text)
	if err != nil {
		return read, wrong("the job %s cannot be read: %v", at, err)
	}
	return read, nil
}

func readJob(text []byte) (job, error) {
	read := noJob()
	var document struct {
		Protocol json.Number `json:"protocol"`
		Archives []struct {
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bytes  *int64 `json:"bytes"`
			Kind   string `json:"kind"`
		} `json:"archives"`
		Setup  string `json:"setup"`
		Limits struct {
			Files *float64 `json:"resultFiles"`
			Bytes *float64 `json:"resultBytes"`
		} `json:"limits"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return read, err
	}
	if document.Protocol.String() != protocol {
		return read, fmt.Errorf("it has protocol %q, and this runner supports %s", document.Protocol, protocol)
	}
	for _, each := range document.Archives {
		at, err := addressOf(each.URI, "the archive")
		if err != nil {
			return read, err
		}
		if each.Kind != kindProgram && each.Kind != kindWheel {
			return read, fmt.Errorf("%q is not a kind of archive", each.Kind)
		}
		if each.Bytes == nil {
			return read, fmt.Errorf("it does not say how large %s is", at)
		}
		read.archives = append(read.archives, archive{at, strings.ToLower(each.SHA256), *each.Bytes, each.Kind})
	}
	read.setup = document.Setup
	read.mostFiles = limit(document.Limits.Files, read.mostFiles)
	read.mostBytes = limit(document.Limits.Bytes, read.mostBytes)
	return read, nil
}

func limit(given *float64, usual int64) int64 {
	if given == nil || *given > math.MaxInt64/2 {
		return usual
	}
	return int64(*given)
}
