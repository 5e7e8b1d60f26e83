package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"
)

// The runner's own exit codes. A program may use the same ones; only the runner's come with a line of its own.
const (
	exitWrong         = 64  // the request is wrong: trying again will not help (sysexits.h: EX_USAGE)
	exitNoResult      = 65  // the program ended well and left nothing (EX_DATAERR)
	exitTemporary     = 75  // elsewhere or later it may work (EX_TEMPFAIL)
	exitNotExecutable = 126 // as shells have it
	exitNotFound      = 127
	exitStopped       = 128 + int(syscall.SIGTERM)
)

// failure ends the runner with its code; the sentence is said on standard error.
type failure struct {
	code     int
	sentence string
}

func (f *failure) Error() string { return f.sentence }

func failed(code int, form string, values ...any) error {
	return &failure{code, fmt.Sprintf(form, values...)}
}

func wrong(form string, values ...any) error     { return failed(exitWrong, form, values...) }
func temporary(form string, values ...any) error { return failed(exitTemporary, form, values...) }

// failureOf finds the failure in an error. What is none is the disk's refusal, or a fault of the runner.
func failureOf(err error) *failure {
	var known *failure
	if errors.As(err, &known) {
		return known
	}
	code := exitWrong
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		code = exitTemporary
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return &failure{code, fmt.Sprintf("%s: %v", path.Path, path.Err)}
	}
	return &failure{code, err.Error()}
}

// printable has escapes in place of control characters and of bytes that are no text: a log is not to be steered by
// the names of files.
func printable(text string) string {
	var shown strings.Builder
	for rest := text; rest != ""; {
		char, size := utf8.DecodeRuneInString(rest)
		switch {
		case char == utf8.RuneError && size == 1:
			fmt.Fprintf(&shown, `\x%02x`, rest[0])
		case strconv.IsPrint(char):
			shown.WriteRune(char)
		default:
			quoted := strconv.QuoteRuneToASCII(char)
			shown.WriteString(quoted[1 : len(quoted)-1])
		}
		rest = rest[size:]
	}
	return shown.String()
}
