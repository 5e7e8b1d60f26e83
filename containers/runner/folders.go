package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// folderKey is the key of an input that names files of an uploaded folder: its store, its digest, and which files.
var folderKey = regexp.MustCompile(`(?s)^(argosy/programs/(?:inputs|kept)/)folders/([0-9a-f]{64})(?:/(.*))?$`)

// folderForm is the form of folders' documents that this runner reads: argosy/model/input_folder.py.
const folderForm = 1

// chunk is a piece of the stream of bytes that the files of a folder are, one after the other.
type chunk struct {
	sha256      string
	start, size int64
}

// storedFile is a file of an uploaded folder. start: of its content in the stream.
type storedFile struct {
	name         string
	start, size  int64
	isExecutable bool
}

// uploadedFolder is what a folder's document says, or what an input names of it.
type uploadedFolder struct {
	document     address
	isFile       bool    // one file of it, or several that are named one by one
	store        address // what chunks lie below
	chunks       []chunk
	files        []storedFile
	links        []link
	emptyFolders []string
}

// folderAt reads the folder that an input names; nil for an input that names objects.
// known: documents that were read already.
func folderAt(ctx context.Context, s3 *store, at address, known map[address]uploadedFolder) (*uploadedFolder, error) {
	found := folderKey.FindStringSubmatch(at.key)
	if found == nil {
		return nil, nil
	}
	document := address{at.bucket, found[1] + "folders/" + found[2]}
	read, isKnown := known[document]
	if !isKnown {
		whole, err := folderIn(ctx, s3, document, found[2])
		if err != nil {
			return nil, err
		}
		read = *whole
		read.document, read.store = document, address{at.bucket, found[1]}
		known[document] = read
	}
	read.choose(found[3])
	if len(read.files)+len(read.links)+len(read.emptyFolders) == 0 {
		return nil, wrong("there is nothing at the input %s", at)
	}
	return &read, nil
}

func folderIn(ctx context.Context, s3 *store, document address, wanted string) (*uploadedFolder, error) {
	text, err := s3.read(ctx, document, "the uploaded input")
	if err != nil {
		return nil, expired(err)
	}
	digest := sha256.Sum256(text)
	if hex.EncodeToString(digest[:]) != wanted {
		return nil, wrong("the uploaded input %s has another digest than its name", document)
	}
	read, err := folderFrom(text)
	if err != nil {
		return nil, wrong("the uploaded input %s cannot be read: %v", document, err)
	}
	return read, nil
}

// expired says more of an object that is not there.
func expired(err error) error {
	if err == nil {
		return nil
	}
	known := failureOf(err)
	if known.code != exitWrong {
		return err
	}
	return wrong("%s It may have expired: submit the run again", known.sentence)
}

func folderFrom(text []byte) (*uploadedFolder, error) {
	packed, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	lines := bufio.NewReader(packed)
	var header struct {
		Form int `json:"form"`
	}
	first, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(first, &header)
	}
	if err != nil {
		return nil, err
	}
	if header.Form != folderForm {
		return nil, fmt.Errorf("it has form %d, and this runner reads %d", header.Form, folderForm)
	}
	read := &uploadedFolder{}
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return read, read.check()
		}
		if err != nil {
			return nil, err
		}
		if err := read.add(line); err != nil {
			return nil, err
		}
	}
}

// add what one line says: its kind, a name or digest, and what belongs to it.
func (f *uploadedFolder) add(line []byte) error {
	var values []any
	if err := json.Unmarshal(line, &values); err != nil {
		return err
	}
	kind, name, size, target := "", "", float64(-1), ""
	if len(values) > 1 {
		kind, _ = values[0].(string)
		name, _ = values[1].(string)
	}
	if len(values) > 2 {
		size, _ = values[2].(float64)
		target, _ = values[2].(string)
	}
	switch {
	case kind == "c" && size > 0:
		f.chunks = append(f.chunks, chunk{name, endOfChunks(f.chunks), int64(size)})
	case (kind == "f" || kind == "x") && size >= 0:
		f.files = append(f.files, storedFile{bytesOf(name), endOfFiles(f.files), int64(size), kind == "x"})
	case kind == "l" && target != "":
		f.links = append(f.links, link{bytesOf(name), bytesOf(target)})
	case kind == "d":
		f.emptyFolders = append(f.emptyFolders, bytesOf(name))
	default:
		return fmt.Errorf("it has a line that cannot be understood: %.80s", line)
	}
	return nil
}

// bytesOf a name whose characters stand for bytes: names need not be UTF-8.
func bytesOf(characters string) string {
	name := make([]byte, 0, len(characters))
	for _, char := range characters {
		name = append(name, byte(char))
	}
	return string(name)
}

func endOfChunks(chunks []chunk) int64 {
	if len(chunks) == 0 {
		return 0
	}
	last := chunks[len(chunks)-1]
	return last.start + last.size
}

func endOfFiles(files []storedFile) int64 {
	if len(files) == 0 {
		return 0
	}
	last := files[len(files)-1]
	return last.start + last.size
}

func (f *uploadedFolder) check() error {
	if endOfChunks(f.chunks) != endOfFiles(f.files) {
		return fmt.Errorf("its chunks are not as long as its files")
	}
	return nil
}

// choose what an input names: everything, what is below a prefix that ends in /, or one file. Names are those in
// $ARGOSY_IN then.
func (f *uploadedFolder) choose(wanted string) {
	below := wanted == "" || strings.HasSuffix(wanted, "/")
	f.isFile = !below
	files, links, folders := f.files, f.links, f.emptyFolders
	f.files, f.links, f.emptyFolders = nil, nil, nil
	for _, each := range files {
		if below && strings.HasPrefix(each.name, wanted) {
			each.name = each.name[len(wanted):]
			f.files = append(f.files, each)
		} else if each.name == wanted {
			each.name = path.Base(wanted)
			f.files = append(f.files, each)
		}
	}
	for _, each := range links {
		if below && strings.HasPrefix(each.name, wanted) {
			f.links = append(f.links, link{each.name[len(wanted):], each.target})
		}
	}
	for _, each := range folders {
		if below && strings.HasPrefix(each, wanted) {
			f.emptyFolders = append(f.emptyFolders, each[len(wanted):])
		}
	}
}

// layOut makes the files, still without their content, and links and empty folders. The files' folders are there.
func (f *uploadedFolder) layOut(folder string) error {
	for _, each := range f.files {
		mode := os.FileMode(0o644)
		if each.isExecutable {
			mode = 0o755
		}
		file, err := os.OpenFile(filepath.Join(folder, each.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		err = file.Truncate(each.size)
		if closed := file.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	for _, each := range f.links {
		if err := os.Symlink(each.target, filepath.Join(folder, each.name)); err != nil {
			return err
		}
	}
	for _, each := range f.emptyFolders {
		if err := os.MkdirAll(filepath.Join(folder, each), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// pieces calls `each` with every chunk that is needed, and the files that have a part in it.
func (f *uploadedFolder) pieces(each func(chunk, []storedFile)) {
	for _, wanted := range f.chunks {
		end := wanted.start + wanted.size
		first := sort.Search(len(f.files), func(i int) bool { return f.files[i].start+f.files[i].size > wanted.start })
		last := first
		for last < len(f.files) && f.files[last].start < end {
			last++
		}
		if last > first {
			each(wanted, f.files[first:last])
		}
	}
}

// downloadChunk writes the parts of the files that are in a chunk, and looks whether it is what its name says. What it
// keeps in memory is a small piece of it.
func (s *store) downloadChunk(ctx context.Context, from address, wanted chunk, files []storedFile, folder string) error {
	at := address{from.bucket, from.key + "chunks/" + wanted.sha256}
	made := func() request {
		return request{method: http.MethodGet, at: at, subject: "the uploaded input " + at.String(), verb: "read"}
	}
	err := s.do(ctx, made, func(response *http.Response) error {
		digest := sha256.New()
		if err := writeParts(io.TeeReader(response.Body, digest), wanted, files, folder); err != nil {
			return err
		}
		if hex.EncodeToString(digest.Sum(nil)) != wanted.sha256 {
			return wrong("the uploaded input %s has another digest than its name", at)
		}
		return nil
	})
	return expired(err)
}

// writeParts reads the whole chunk. An error of the disk is a failure; any other is the connection's.
func writeParts(content io.Reader, wanted chunk, files []storedFile, folder string) error {
	at := wanted.start
	end := wanted.start + wanted.size
	for _, each := range files {
		first, last := max(at, each.start), min(end, each.start+each.size)
		if first >= last {
			continue
		}
		if _, err := io.CopyN(io.Discard, content, first-at); err != nil {
			return err
		}
		if err := writePart(content, filepath.Join(folder, each.name), first-each.start, last-first); err != nil {
			return err
		}
		at = last
	}
	_, err := io.Copy(io.Discard, content)
	return err
}

func writePart(content io.Reader, path string, offset, length int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return failureOf(err)
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return failureOf(err)
	}
	piece := make([]byte, min(length, 128<<10))
	for length > 0 {
		count, ended := io.ReadFull(content, piece[:min(length, int64(len(piece)))])
		if _, err := file.Write(piece[:count]); err != nil {
			return failureOf(err)
		}
		if length -= int64(count); ended != nil {
			return ended
		}
	}
	if err := file.Close(); err != nil {
		return failureOf(err)
	}
	return nil
}
