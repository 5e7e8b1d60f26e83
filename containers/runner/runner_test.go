package main

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The example of S3's own documentation:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
func TestARequestIsSignedAsAWSDocuments(t *testing.T) {
	request, _ := http.NewRequest(http.MethodGet, "https://examplebucket.s3.amazonaws.com/test.txt", nil)
	request.Header.Set("Range", "bytes=0-9")
	with := keys{AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	sign(request, with, "us-east-1", emptyDigest, time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
	wanted := "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
	if signed := request.Header.Get("Authorization"); !strings.HasSuffix(signed, wanted) {
		t.Error(signed)
	}
}

func TestWhatNeverChangesIsSavedAgainOnceADay(t *testing.T) {
	began := time.Now()
	c := checkpoints{renewedAt: began, sent: map[string]bool{"a": true}, last: map[string]seenFile{"f": {}}}
	if c.renew(began.Add(23*time.Hour), "time"); len(c.sent) != 1 || len(c.last) != 1 {
		t.Error("too early")
	}
	if c.renew(began.Add(25*time.Hour), "stop"); len(c.sent) != 1 {
		t.Error("a stop leaves little time")
	}
	if c.renew(began.Add(25*time.Hour), "time"); len(c.sent) != 0 || len(c.last) != 0 {
		t.Error("objects expire by their age")
	}
	c.sent["a"] = true
	if c.renew(began.Add(30*time.Hour), "commit"); len(c.sent) != 1 {
		t.Error("every time")
	}
	if c.renew(began.Add(74*time.Hour), "stop"); len(c.sent) != 0 {
		t.Error("it is due for more than a day")
	}
}

func TestABucketIsInTheHostsNameUnlessItIsNoNameOfAHost(t *testing.T) {
	s3 := newStore(nil)
	for bucket, wanted := range map[string]string{
		"results":  "https://results.s3.eu-west-1.amazonaws.com/a%20b/%2B",
		"two.dots": "https://s3.eu-west-1.amazonaws.com/two.dots/a%20b/%2B",
		"Old_one":  "https://s3.eu-west-1.amazonaws.com/Old_one/a%20b/%2B",
	} {
		at := s3.place(request{at: address{bucket, "a b/+"}}, "eu-west-1")
		if at.String() != wanted {
			t.Error(at.String(), wanted)
		}
	}
	if at := s3.place(request{at: address{"b", "a"}}, "cn-north-1"); at.Host != "b.s3.cn-north-1.amazonaws.com.cn" {
		t.Error(at.Host)
	}
}

func TestAnEndpointMayHaveAPath(t *testing.T) {
	s3 := newStore([]string{"AWS_ENDPOINT_URL_S3=http://127.0.0.1:9000/below/"})
	if at := s3.place(request{at: address{"b", "k"}}, "us-east-1"); at.String() != "http://127.0.0.1:9000/below/b/k" {
		t.Error(at)
	}
}

func TestNothingOfANameReachesTheTerminal(t *testing.T) {
	if shown := printable("ä\x1b[2J\xff\n"); shown != `ä\x1b[2J\xff\n` {
		t.Error(shown)
	}
}

func TestThePartIsFoundByTheSuffixOfItsAddress(t *testing.T) {
	files := []left{{name: "model.bin"}, {name: "part.csv"}, {name: "part.jsonl"}}
	for part, wanted := range map[string]int{
		"s3://b/part-0000007.csv": 1, "s3://b/part-1.jsonl": 2, "s3://b/part-1": -1, "s3://b/other.csv": -1, "": -1,
	} {
		if found := partOf(files, part); found != wanted {
			t.Error(part, found)
		}
	}
}

func TestNumbersAreGrouped(t *testing.T) {
	for number, wanted := range map[int64]string{3: "3", 999: "999", 10_000: "10,000", 53_687_091_200: "53,687,091,200"} {
		if shown := grouped(number); shown != wanted {
			t.Error(shown)
		}
	}
}

func TestCredentialsAreNotAskedForInTheOpen(t *testing.T) {
	for place, isAsked := range map[string]bool{
		"http://169.254.170.23/v1/credentials": true, "http://127.0.0.1:80/x": true, "http://[::1]/x": true,
		"https://vault.example/x": true, "http://vault.example/x": false, "http://10.0.0.1/x": false, "nonsense": false,
	} {
		from := credentials{environment: []string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=" + place}}
		if _, err := from.request(t.Context()); (err == nil) != isAsked {
			t.Error(place, err)
		}
	}
}

// A program that is found by PATH has to be one: a folder of that name is none, and a later file may be.
func TestTheFirstProgramOfPathThatCanBeExecutedIsTaken(t *testing.T) {
	folder := t.TempDir()
	_ = os.MkdirAll(filepath.Join(folder, "a", "tool"), 0o755)
	for place, mode := range map[string]os.FileMode{"b": 0o644, "c": 0o755} {
		_ = os.MkdirAll(filepath.Join(folder, place), 0o755)
		_ = os.WriteFile(filepath.Join(folder, place, "tool"), []byte("#!/bin/sh\n"), mode)
	}
	named := func(places string) (string, error) {
		return programPath(command{words: []string{"tool"}, environment: []string{"PATH=" + places}, folder: folder})
	}
	if path, err := named("a:b:c"); err != nil || path != filepath.Join(folder, "c", "tool") {
		t.Error(path, err)
	}
	if _, err := named("a:b"); failureOf(err).code != exitNotExecutable {
		t.Error(err)
	}
	if _, err := named("a"); failureOf(err).code != exitNotFound {
		t.Error(err)
	}
}

// Every byte of a program's output is kept, though the reader learns of the program's end in the middle of it.
func TestWhatIsInThePipeAtTheEndIsKept(t *testing.T) {
	for round := range 50 {
		path := filepath.Join(t.TempDir(), "stdout")
		log, _ := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		copied, err := newCopier(path, log)
		if err != nil {
			t.Fatal(err)
		}
		written, _ := io.WriteString(copied.into, strings.Repeat("x", 1000*round))
		if err := copied.end(); err != nil {
			t.Fatal(err)
		}
		if about, _ := os.Stat(path); about.Size() != int64(written) {
			t.Fatal(round, about.Size())
		}
	}
}

func TestAnAddressOfPathsIsEscapedOnce(t *testing.T) {
	at := url.URL{Scheme: "https", Host: "h", Path: "/a b/ä+%2F", RawPath: escaped("/a b/ä+%2F", "/")}
	if shown := at.EscapedPath(); shown != "/a%20b/%C3%A4%2B%252F" {
		t.Error(shown)
	}
}

func TestThatMemoryRanOutIsReadFromTheControlGroup(t *testing.T) {
	for wanted, files := range map[string]map[string]string{
		"killed: out of memory, of which the task may use 1,024 MiB": {
			"memory.events": "low 0\noom 3\noom_kill 2\noom_group_kill 0\n", "memory.max": "1073741824\n"},
		"killed: out of memory, of which the task may use 60 MiB": {
			"memory/memory.oom_control":    "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
			"memory/memory.limit_in_bytes": "62914560\n"},
		"killed: out of memory": {"memory.events": "oom_kill 1\n", "memory.max": "max\n"},
		"":                      {"memory.events": "oom 1\noom_kill 0\n", "memory.max": "1073741824\n"},
	} {
		folder := t.TempDir()
		if err := os.Mkdir(folder+"/memory", 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if said := outOfMemory(folder); said != wanted {
			t.Error(said, wanted)
		}
	}
	if said := outOfMemory(t.TempDir()); said != "" {
		t.Error(said)
	}
}

func TestTheUseOfAContainerIsReadFromItsControlGroup(t *testing.T) {
	for _, files := range []map[string]string{
		{"cpu.stat": "usage_usec 2500000\nuser_usec 1\n", "memory.current": "73400320\n",
			"memory.stat": "anon 1\ninactive_file 10485760\n"},
		{"cpuacct/cpuacct.usage": "2500000000\n", "memory/memory.usage_in_bytes": "73400320\n",
			"memory/memory.stat": "inactive_file 1\ntotal_inactive_file 10485760\n"},
	} {
		folder := t.TempDir()
		for name, text := range files {
			_ = os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700)
			_ = os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)
		}
		if found, isKnown := controlGroup(folder); !isKnown || found != (usage{2.5, 60 << 20}) {
			t.Error(found, isKnown)
		}
	}
	root := t.TempDir() // of the whole machine: it has no memory.current
	_ = os.WriteFile(filepath.Join(root, "cpu.stat"), []byte("usage_usec 2500000\n"), 0o600)
	if found, isKnown := controlGroup(root); isKnown {
		t.Error(found)
	}
}

func TestAShortProgramIsWorthNoRequestWhereRequestsCostMoney(t *testing.T) {
	here := []string{"AWS_ENDPOINT_URL=http://127.0.0.1:4566"}
	if onAWS := taskMeter(nil, &supervisor{}); onAWS.least != cheap || taskMeter(here, &supervisor{}).least != 0 {
		t.Error(onAWS.least)
	}
}
