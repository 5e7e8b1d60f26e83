package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// downloadArchive fetches an archive and looks whether it is what the job says.
func (s *store) downloadArchive(ctx context.Context, wanted archive, path string) error {
	if err := s.download(ctx, wanted.at, "the archive", path, wanted.size); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return err
	}
	if hex.EncodeToString(digest.Sum(nil)) != wanted.sha256 {
		return wrong("the archive %s has another digest than the job says", wanted.at)
	}
	return nil
}

// unpacking is one archive on its way into its folder. Every write goes through `into`, which refuses to leave it,
// whatever links lie there. Links are made last, and none may lead out.
type unpacking struct {
	context context.Context
	from    archive
	into    *os.Root
	links   []link
	most    int64 // bytes that it may unpack to
	left    int64
}

// An archive may unpack to leastBytes, or to mostTimes its own size; an entry counts as entryBytes besides its content.
const (
	leastBytes = 1 << 30
	mostTimes  = 20
	entryBytes = 512
)

type link struct{ name, target string }

// unpack an archive that lies at `path` into the folder. What an earlier one has left of the same name is replaced.
func unpack(ctx context.Context, from archive, path, folder string) error {
	into, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer into.Close()
	most := max(leastBytes, mostTimes*from.size)
	u := &unpacking{context: ctx, from: from, into: into, most: most, left: most}
	if from.kind == kindWheel {
		return u.wheel(path)
	}
	if err := u.program(path); err != nil {
		return err
	}
	return u.makeLinks()
}

func (u *unpacking) refused(form string, values ...any) error {
	return wrong("the archive %s "+form, append([]any{u.from.at}, values...)...)
}

func (u *unpacking) damaged(err error) error { return u.refused("cannot be read: %v", err) }

// take the room of an entry; its content takes its own while it is written.
func (u *unpacking) take(size uint64) error {
	if u.left -= entryBytes; u.left < 0 || size > uint64(u.left) {
		return u.tooLarge()
	}
	return nil
}

func (u *unpacking) tooLarge() error {
	return u.refused("would unpack to more than %d MiB", u.most>>20)
}

func (u *unpacking) program(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		return u.damaged(err)
	}
	members := tar.NewReader(packed)
	for {
		member, err := members.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return u.damaged(err)
		}
		if err := u.take(uint64(member.Size)); err != nil {
			return err
		}
		if err := u.member(member, members); err != nil {
			return err
		}
	}
}

func (u *unpacking) member(member *tar.Header, content io.Reader) error {
	name := filepath.Clean(member.Name)
	if !filepath.IsLocal(member.Name) || strings.ContainsRune(name, 0) || hasDots(member.Name) {
		return u.refused("has a name that leaves its folder: %s", member.Name)
	}
	switch member.Typeflag {
	case tar.TypeDir:
		return u.made(name, u.into.MkdirAll(name, 0o755))
	case tar.TypeReg:
		return u.write(name, content, member.Mode&0o111 != 0)
	case tar.TypeSymlink:
		u.links = append(u.links, link{name, member.Linkname})
		return nil
	case tar.TypeLink:
		if !filepath.IsLocal(member.Linkname) {
			return u.refused("has a link out of its folder: %s", member.Name)
		}
		if err := u.clear(name); err != nil {
			return err
		}
		return u.made(name, u.into.Link(filepath.Clean(member.Linkname), name))
	case tar.TypeXGlobalHeader:
		return nil
	}
	return u.refused("has an entry that is not a file, folder or link: %s", member.Name)
}

func hasDots(name string) bool {
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

// made: what the disk refuses is the disk's matter, and everything else the archive's.
func (u *unpacking) made(name string, err error) error {
	var path *fs.PathError
	if err == nil || failureOf(err).code == exitTemporary {
		return err
	}
	if errors.As(err, &path) {
		err = path.Err
	}
	return u.refused("has a member that cannot be unpacked: %s: %v", name, err)
}

func (u *unpacking) write(name string, content io.Reader, isExecutable bool) error {
	if err := u.into.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return u.made(name, err)
	}
	if err := u.clear(name); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if isExecutable {
		mode = 0o755
	}
	file, err := u.into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return u.made(name, err)
	}
	defer file.Close()
	if err := u.copy(file, content); err != nil {
		return err
	}
	return file.Close()
}

func (u *unpacking) copy(file *os.File, content io.Reader) error {
	piece := make([]byte, 128<<10)
	for u.context.Err() == nil {
		count, err := content.Read(piece)
		if u.left -= int64(count); u.left < 0 {
			return u.tooLarge()
		}
		if _, full := file.Write(piece[:count]); full != nil {
			return full
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return u.damaged(err)
		}
	}
	return u.context.Err()
}

// clear a name that an earlier member or archive has used: the last one counts.
func (u *unpacking) clear(name string) error {
	about, err := u.into.Lstat(name)
	if err != nil || about.IsDir() {
		return nil
	}
	return u.made(name, u.into.Remove(name))
}

// makeLinks, then looks where each leads: only then are all there that it may lead through.
func (u *unpacking) makeLinks() error {
	for _, each := range u.links {
		if err := u.into.MkdirAll(filepath.Dir(each.name), 0o755); err != nil {
			return u.made(each.name, err)
		}
		if err := u.clear(each.name); err != nil {
			return err
		}
		if err := u.into.Symlink(each.target, each.name); err != nil {
			return u.made(each.name, err)
		}
	}
	for _, each := range u.links {
		if _, err := u.into.Stat(each.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return u.refused("has a link out of its folder: %s", each.name)
		}
	}
	return nil
}

// wheel unpacks what Python imports of a wheel.
func (u *unpacking) wheel(path string) error {
	opened, err := zip.OpenReader(path)
	if err != nil {
		return u.damaged(err)
	}
	defer opened.Close()
	for _, each := range opened.File {
		if err := u.take(each.UncompressedSize64); err != nil {
			return err
		}
		name := importable(each.Name)
		if name == "" || strings.HasSuffix(name, "/") {
			continue
		}
		if !filepath.IsLocal(name) || hasDots(name) || strings.ContainsRune(name, 0) {
			return u.refused("has a name that leaves its folder: %s", each.Name)
		}
		content, err := each.Open()
		if err != nil {
			return u.damaged(err)
		}
		err = u.write(filepath.Clean(name), content, each.Mode()&0o111 != 0 && each.ExternalAttrs>>16 != 0)
		content.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// importable is where a file of a wheel belongs (PEP 427); "" for what Python does not import.
func importable(name string) string {
	first, rest, _ := strings.Cut(name, "/")
	if !strings.HasSuffix(first, ".data") {
		return name
	}
	kind, below, _ := strings.Cut(rest, "/")
	if kind == "purelib" || kind == "platlib" {
		return below
	}
	return ""
}
