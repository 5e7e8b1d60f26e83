package main

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// left is a file that a program has left. name: relative to the result's folder; size in bytes.
type left struct {
	path string
	name string
	size int64
}

// uploadFolder sends what is in the folder; the part, which `results --merge` reads, last: where it is, everything is.
func uploadFolder(ctx context.Context, s3 *store, asked order, folder string, limits job) error {
	found, err := leftIn(folder, limits)
	if err != nil {
		return err
	}
	part := partOf(found, asked.part)
	sending := newGroup(ctx, connections)
	for number, each := range found {
		if number == part {
			continue
		}
		at, err := addressOf(asked.output+each.name, "ARGOSY_OUTPUT_URI")
		if err != nil {
			sending.fail(err)
			break
		}
		sending.start(func() error { return s3.put(sending.context, at, each, nil, nil) })
	}
	if err := sending.wait(); err != nil || part < 0 {
		return err
	}
	return uploadPart(ctx, s3, asked, found[part])
}

// uploadPart sends the task's final object. One that an earlier attempt has left stays: it is as good, unless another
// version of the program wrote it.
func uploadPart(ctx context.Context, s3 *store, asked order, from left) error {
	at, err := addressOf(asked.part, "ARGOSY_PART_URI")
	if err != nil {
		return err
	}
	about := map[string]string{}
	if asked.attempt != "" {
		about["X-Amz-Meta-Argosy-Attempt"] = asked.attempt
	}
	err = s3.put(ctx, at, from, about, map[string]string{conditionMissing: "*"})
	for errors.Is(err, errAlreadyThere) {
		tag, attempt, failed := s3.partThere(ctx, at)
		if failed != nil || attempt < 0 || attempt >= asked.first {
			return failed
		}
		err = s3.put(ctx, at, from, about, map[string]string{conditionSame: tag})
	}
	return err
}

// partThere: the ETag of a part, and the attempt that wrote it; -1: it does not say.
func (s *store) partThere(ctx context.Context, at address) (tag string, attempt int, err error) {
	asked := request{method: http.MethodHead, at: at, subject: "the result " + at.String(), verb: "written"}
	err = s.do(ctx, func() request { return asked }, func(response *http.Response) error {
		var isWrong error
		tag = response.Header.Get("ETag")
		if attempt, isWrong = strconv.Atoi(response.Header.Get("X-Amz-Meta-Argosy-Attempt")); isWrong != nil {
			attempt = -1
		}
		return nil
	})
	return tag, attempt, err
}

// leftIn lists the files in the order of their names, within the job's limits.
func leftIn(folder string, limits job) ([]left, error) {
	var found []left
	var total int64
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if _, isGone := os.Stat(path); entry.Type()&fs.ModeSymlink != 0 && errors.Is(isGone, fs.ErrNotExist) {
			say(path[len(folder)+1:] + " in $ARGOSY_OUT is a link that leads nowhere: left out of the result")
			return nil
		}
		each, err := fileAt(path, folder)
		if err != nil {
			return err
		}
		found, total = append(found, each), total+each.size
		if int64(len(found)) > limits.mostFiles {
			return wrong("the result has more than %s files; pack them into fewer", grouped(limits.mostFiles))
		}
		if total > limits.mostBytes {
			return wrong("the result has more than %s bytes, the limit for a task", grouped(limits.mostBytes))
		}
		return nil
	})
	if err == nil && len(found) == 0 {
		return nil, failed(exitNoResult, "the program succeeded but wrote no file into $ARGOSY_OUT;"+
			" use `result: stdout` if it prints its result, or `result: none` if it has none")
	}
	return found, err
}

func fileAt(path, folder string) (left, error) {
	name := path[len(folder)+1:]
	if !utf8.ValidString(name) {
		return left{}, wrong("the result has a file whose name is not UTF-8: %s", name)
	}
	about, err := os.Stat(path) // of what a link leads to
	if err != nil {
		return left{}, wrong("the result's file %s cannot be read: %v", name, errors.Unwrap(err))
	}
	if !about.Mode().IsRegular() {
		return left{}, wrong("the result has an entry that is not a file: %s", name)
	}
	return left{path, name, about.Size()}, nil
}

var partName = regexp.MustCompile(`(?s)^part-[0-9]+(.*)$`)

// partOf is the index of the file `part` with the part's own suffix, or of the only file if its name ends in that; -1.
func partOf(found []left, part string) int {
	match := partName.FindStringSubmatch(part[strings.LastIndex(part, "/")+1:])
	if match == nil {
		return -1
	}
	for number, each := range found {
		if each.name == "part"+match[1] {
			return number
		}
	}
	if len(found) == 1 && match[1] != "" && strings.HasSuffix(found[0].name, match[1]) {
		return 0
	}
	return -1
}

// grouped: 10,000.
func grouped(number int64) string {
	text := strconv.FormatInt(number, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
