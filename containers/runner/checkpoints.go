package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"
)

const (
	commitName      = ".commit" // the program makes it, and it is gone once the folder is saved
	keptCheckpoints = 2
	checkpointFiles = 4               // sent at a time
	renewed         = 24 * time.Hour  // objects expire by their age, so files that never change are sent again
	settled         = 2 * time.Second // a file that changed later may be half written
)

// errChanging: a file of the folder changed while it was read.
var errChanging = errors.New("a file changed while it was saved")

var storedName = regexp.MustCompile(`^(\d+)/(?:(\d+)\.json|files/[0-9a-f]{64})$`)

// checkpoints are the saved states of one task, for one attempt. Below the address: <attempt>/files/<sha256>, and
// <attempt>/<number>.json, which is written last. The newest record of the highest attempt wins. An attempt writes below
// its own number and removes there and below lower ones, so one that is believed lost harms no successor.
type checkpoints struct {
	s3              *store
	at              address // ends in /
	attempt         int
	folder, staging string

	own       []checkpointRecord // the latest ones
	sent      map[string]bool    // digests of the own objects
	known     map[string]string  // digests of files that have not changed
	last      map[string]seenFile
	renewedAt time.Time
	number    int
	committed bool // the program commits: nothing else is a checkpoint
}

type seenFile struct {
	size, mtime int64
	inode       uint64
	mode        fs.FileMode
}

type savedFile struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Mtime  int64  `json:"mtimeNs"`
	Mode   uint32 `json:"mode"`
}

type checkpointRecord struct {
	Version   int         `json:"version"`
	Committed *bool       `json:"committed"`
	Bytes     int64       `json:"bytes"`
	Cause     string      `json:"cause"`
	At        float64     `json:"at"`
	Seconds   float64     `json:"seconds"`
	Sent      int64       `json:"sent"`
	Files     []savedFile `json:"files"`

	attempt, number int
}

// storedObject is one of the task's checkpoints. number: of a record; -1 = it is content.
type storedObject struct {
	at              address
	attempt, number int
}

func newCheckpoints(asked order, work workspace, s3 *store) (*checkpoints, error) {
	at, err := addressOf(asked.checkpoint, "the folder of checkpoints")
	if err != nil {
		return nil, err
	}
	attempt, _ := strconv.Atoi(asked.attempt)
	return &checkpoints{
		s3: s3, at: at, attempt: attempt, folder: work.checkpoint(), staging: work.staging(), sent: map[string]bool{},
		renewedAt: time.Now(),
	}, os.Mkdir(work.checkpoint(), 0o700)
}

// restore brings the newest complete checkpoint into the folder; nil if there is none. One that goes away meanwhile has
// a successor, so the list is read again.
func (c *checkpoints) restore(ctx context.Context) (*checkpointRecord, error) {
	damaged := map[string]bool{}
	for {
		listed, err := c.listed(ctx)
		if err != nil {
			return nil, err
		}
		var newest *storedObject
		for _, each := range listed {
			newer := newest == nil || each.attempt > newest.attempt || each.attempt == newest.attempt && each.number > newest.number
			if each.number >= 0 && !damaged[each.at.key] && newer {
				newest = &each
			}
		}
		if newest == nil {
			return nil, nil
		}
		found, err := c.take(ctx, *newest)
		if known := new(failure); err == nil || !errors.As(err, &known) || known.code != exitWrong {
			return found, err
		}
		damaged[newest.at.key] = true
		if err := emptied(c.folder); err != nil {
			return nil, err
		}
	}
}

func (c *checkpoints) take(ctx context.Context, stored storedObject) (*checkpointRecord, error) {
	text, err := c.s3.read(ctx, stored.at, "the checkpoint")
	if err != nil {
		return nil, err
	}
	found := &checkpointRecord{attempt: stored.attempt, number: stored.number}
	if json.Unmarshal(text, found) != nil || found.Committed == nil {
		return nil, wrong("the checkpoint %s cannot be read", stored.at)
	}
	below := c.below(stored.attempt, "files/")
	fetching := newGroup(ctx, connections)
	for _, each := range found.Files {
		if !isPath(each.Name) || !storedName.MatchString("0/files/"+each.SHA256) {
			fetching.fail(wrong("the checkpoint %s names no file", stored.at))
			break
		}
		from := address{below.bucket, below.key + each.SHA256}
		fetching.start(func() error { return c.fetch(fetching.context, from, each) })
	}
	if err := fetching.wait(); err != nil {
		return nil, err
	}
	c.committed = *found.Committed
	c.last, err = c.scan()
	return found, err
}

func (c *checkpoints) fetch(ctx context.Context, from address, file savedFile) error {
	path := filepath.Join(c.folder, file.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := c.s3.download(ctx, from, "the checkpoint", path, -1); err != nil {
		return err
	}
	if digest, err := digestOf(path); err != nil || digest != file.SHA256 {
		return wrong("the checkpoint %s is damaged", from)
	}
	if err := os.Chmod(path, fs.FileMode(file.Mode&0o777)); err != nil {
		return err
	}
	return os.Chtimes(path, time.Unix(0, file.Mtime), time.Unix(0, file.Mtime))
}

// save the folder unless nothing changed. isSettled: no process writes now. errChanging: it did not rest.
func (c *checkpoints) save(ctx context.Context, cause string, isSettled bool) error {
	c.renew(time.Now(), cause)
	seen, err := c.scan()
	if err != nil || len(seen) == 0 || same(seen, c.last) && (cause != "commit" || c.committed) {
		return err
	}
	began, names := time.Now(), []string{}
	for name, each := range seen {
		if !isSettled && began.UnixNano()-each.mtime < int64(settled) {
			return errChanging
		}
		names = append(names, name)
	}
	sort.Strings(names)
	staged, err := c.staged(names, seen)
	if err != nil {
		return err
	}
	c.committed = c.committed || cause == "commit"
	record := checkpointRecord{Version: 1, Committed: &c.committed, Cause: cause, Files: make([]savedFile, len(names))}
	var guard sync.Mutex
	sending := newGroup(ctx, checkpointFiles)
	for number, name := range names {
		sending.start(func() error {
			digest, sent, err := c.saved(sending.context, &guard, name, seen[name], staged[name])
			guard.Lock()
			defer guard.Unlock()
			record.Bytes, record.Sent = record.Bytes+seen[name].size, record.Sent+sent
			about := seen[name]
			record.Files[number] = savedFile{name, digest, about.size, about.mtime, uint32(about.mode)}
			return err
		})
	}
	if err := sending.wait(); err != nil {
		return err
	}
	c.number++
	record.attempt, record.number = c.attempt, c.number
	record.At, record.Seconds = float64(began.UnixNano())/1e9, time.Since(began).Seconds()
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	at := c.below(c.attempt, fmt.Sprintf("%06d.json", c.number))
	asked := request{method: http.MethodPut, at: at, subject: "the checkpoint " + at.String(), verb: "written"}
	if err := c.s3.do(ctx, func() request { return withText(asked, text) }, ignored); err != nil {
		return err
	}
	c.own, c.last = append(c.own, record), seen
	c.own = c.own[max(0, len(c.own)-keptCheckpoints):]
	return c.removeOld(ctx)
}

// renew forgets once a day what is saved, so that all of it is sent again. A stop leaves little time, so what is due then
// waits for a day.
func (c *checkpoints) renew(now time.Time, cause string) {
	after := renewed
	if cause == "stop" {
		after = 2 * renewed
	}
	if now.Sub(c.renewedAt) >= after {
		c.renewedAt, c.last, c.known, c.sent = now, nil, nil, map[string]bool{}
	}
}

// clear: the task is done, and no checkpoint of this attempt or an earlier one is needed.
func (c *checkpoints) clear(ctx context.Context) error {
	return c.remove(ctx, func(storedObject) bool { return false })
}

func (c *checkpoints) below(attempt int, name string) address {
	return address{c.at.bucket, c.at.key + strconv.Itoa(attempt) + "/" + name}
}

func (c *checkpoints) listed(ctx context.Context) ([]storedObject, error) {
	var found []storedObject
	err := c.s3.below(ctx, c.at, "the checkpoints", func(key string) error {
		name := storedName.FindStringSubmatch(strings.TrimPrefix(key, c.at.key))
		if name == nil {
			return nil
		}
		each := storedObject{at: address{c.at.bucket, key}, number: -1}
		each.attempt, _ = strconv.Atoi(name[1])
		if name[2] != "" {
			each.number, _ = strconv.Atoi(name[2])
		}
		found = append(found, each)
		return nil
	})
	return found, err
}

// scan finds all files, those behind links included. errChanging: one went away meanwhile.
func (c *checkpoints) scan() (map[string]seenFile, error) {
	found := map[string]seenFile{}
	err := filepath.WalkDir(c.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := path[len(c.folder)+1:]
		about, err := os.Stat(path)
		if err != nil && entry.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if about.Mode().IsRegular() && name != commitName && utf8.ValidString(name) {
			inode := uint64(0)
			if system, isKnown := about.Sys().(*syscall.Stat_t); isKnown {
				inode = system.Ino
			}
			found[name] = seenFile{about.Size(), about.ModTime().UnixNano(), inode, about.Mode().Perm()}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = errChanging
	}
	return found, err
}

// staged makes links to the files that changed, all before any file changed again: a program that replaces a file does
// not disturb its upload. Where the file system has no links, the file itself is read.
func (c *checkpoints) staged(names []string, seen map[string]seenFile) (map[string]string, error) {
	if err := emptied(c.staging); err != nil {
		return nil, err
	}
	links := map[string]string{}
	for number, name := range names {
		if _, isKnown := c.known[seen[name].key(name)]; isKnown {
			continue
		}
		path := filepath.Join(c.folder, name)
		links[name] = filepath.Join(c.staging, strconv.Itoa(number))
		from, err := filepath.EvalSymlinks(path)
		if err == nil {
			err = os.Link(from, links[name])
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errChanging
		}
		if err != nil {
			links[name] = path
		}
	}
	again, err := c.scan()
	if err == nil && !same(again, seen) {
		err = errChanging
	}
	return links, err
}

// saved is the digest of a file whose content is in S3 now, and how much was sent.
func (c *checkpoints) saved(ctx context.Context, guard *sync.Mutex, name string, seen seenFile, staged string) (string, int64, error) {
	guard.Lock()
	digest, isKnown := c.known[seen.key(name)]
	guard.Unlock()
	if isKnown {
		return digest, 0, nil
	}
	digest, err := digestOf(staged)
	if err != nil {
		return "", 0, changing(err)
	}
	guard.Lock()
	isThere := c.sent[digest]
	guard.Unlock()
	sent := int64(0)
	if !isThere {
		at := c.below(c.attempt, "files/"+digest)
		if err := c.s3.putAs(ctx, "the checkpoint", at, left{path: staged, size: seen.size}); err != nil {
			return "", 0, changing(err)
		}
		sent = seen.size
	}
	about, err := os.Stat(staged)
	if err != nil {
		return "", 0, changing(err)
	}
	if about.Size() != seen.size || about.ModTime().UnixNano() != seen.mtime {
		return "", 0, errChanging // written in place; what was sent goes with the next removal
	}
	guard.Lock()
	defer guard.Unlock()
	c.sent[digest] = true
	if time.Now().UnixNano()-seen.mtime > int64(settled) {
		if c.known == nil {
			c.known = map[string]string{}
		}
		c.known[seen.key(name)] = digest
	}
	return digest, sent, nil
}

// removeOld removes all but the newest ones, of this attempt and the earlier ones.
func (c *checkpoints) removeOld(ctx context.Context) error {
	digests, numbers, known := map[string]bool{}, map[int]bool{}, map[string]bool{}
	for _, record := range c.own {
		numbers[record.number] = true
		for _, each := range record.Files {
			digests[each.SHA256], known[each.Name] = true, true
		}
	}
	listed, err := c.listed(ctx)
	if err != nil {
		return err
	}
	lower := -1
	for _, each := range listed {
		if len(c.own) < keptCheckpoints && each.number >= 0 && each.attempt < c.attempt {
			lower = max(lower, each.attempt)
		}
	}
	maps.DeleteFunc(c.sent, func(digest string, _ bool) bool { return !digests[digest] })
	for key, digest := range c.known {
		if name, _, _ := strings.Cut(key, "\x00"); !digests[digest] || !known[name] {
			delete(c.known, key)
		}
	}
	return c.removeListed(ctx, listed, func(each storedObject) bool {
		if each.attempt < c.attempt {
			return each.attempt == lower
		}
		if each.number >= 0 {
			return numbers[each.number]
		}
		return digests[filepath.Base(each.at.key)]
	})
}

func (c *checkpoints) remove(ctx context.Context, isKept func(storedObject) bool) error {
	listed, err := c.listed(ctx)
	if err != nil {
		return err
	}
	return c.removeListed(ctx, listed, isKept)
}

// removeListed removes records first: one that is left names only files that exist.
func (c *checkpoints) removeListed(ctx context.Context, listed []storedObject, isKept func(storedObject) bool) error {
	for _, isContent := range []bool{false, true} {
		removing := newGroup(ctx, connections)
		for _, each := range listed {
			if each.attempt <= c.attempt && (each.number < 0) == isContent && !isKept(each) {
				asked := request{method: http.MethodDelete, at: each.at, subject: "the checkpoint " + each.at.String(), verb: "removed"}
				removing.start(func() error { return c.s3.do(removing.context, func() request { return asked }, ignored) })
			}
		}
		if err := removing.wait(); err != nil {
			return err
		}
	}
	return nil
}

func (s seenFile) key(name string) string {
	return fmt.Sprintf("%s\x00%d %d %d %o", name, s.size, s.mtime, s.inode, s.mode)
}

func same(one, other map[string]seenFile) bool {
	for name, each := range one {
		if found, isThere := other[name]; !isThere || found != each {
			return false
		}
	}
	return len(one) == len(other)
}

func changing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errChanging
	}
	return err
}

func emptied(folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return os.Mkdir(folder, 0o700)
}

func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	digest := sha256.New()
	_, err = io.Copy(digest, file)
	return hex.EncodeToString(digest.Sum(nil)), err
}
