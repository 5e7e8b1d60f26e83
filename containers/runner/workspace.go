package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// workspace is one attempt's own folder, in the first place of the container that can be written. Its name is absolute.
type workspace struct{ root string }

func (w workspace) program() string  { return filepath.Join(w.root, "program") }
func (w workspace) wheels() string   { return filepath.Join(w.root, "wheels") }
func (w workspace) archives() string { return filepath.Join(w.root, "archives") }
func (w workspace) inputs() string   { return filepath.Join(w.root, "in") }
func (w workspace) out() string      { return filepath.Join(w.root, "out") }
func (w workspace) home() string     { return filepath.Join(w.root, "home") }
func (w workspace) scratch() string  { return filepath.Join(w.root, "tmp") }
func (w workspace) stdout() string   { return filepath.Join(w.root, "stdout") }

func (w workspace) checkpoint() string { return filepath.Join(w.root, "checkpoint") }
func (w workspace) staging() string    { return filepath.Join(w.root, "staging") } // for links, on the same file system

// ownRoot is made where the image brings no folder that can be written: better than /dev/shm, which is memory.
const ownRoot = "/argosy"

func newWorkspace(temporaryFolder string) (workspace, error) {
	tried := []string{ownRoot, temporaryFolder, "/tmp", ownRoot, "/dev/shm"}
	for number, place := range tried {
		if number == 3 {
			_ = os.Mkdir(place, 0o755)
		}
		if root, err := madeIn(place); err == nil {
			made := workspace{root}
			for _, each := range []string{made.inputs(), made.out(), made.home(), made.scratch(), made.archives()} {
				if err := os.Mkdir(each, 0o700); err != nil {
					made.remove()
					return made, err
				}
			}
			return made, nil
		}
	}
	return workspace{}, temporary("the program has nowhere to work: none of /argosy, $TMPDIR, /tmp, /dev/shm can be written")
}

func madeIn(place string) (string, error) {
	if !isWritable(place) {
		return "", syscall.EACCES
	}
	place, err := filepath.EvalSymlinks(place)
	if err != nil {
		return "", err
	}
	if place, err = filepath.Abs(place); err != nil {
		return "", err
	}
	return os.MkdirTemp(place, "argosy-")
}

func isWritable(folder string) bool {
	about, err := os.Stat(folder)
	return err == nil && about.IsDir() && syscall.Access(folder, 2|1) == nil // W_OK, X_OK
}

// archive is where the archive with this number lies until it is unpacked.
func (w workspace) archive(number int) string {
	return filepath.Join(w.archives(), strconv.Itoa(number))
}

// explained says more of a program that may not be executed because of where it lies: Docker mounts /dev/shm so.
func (w workspace) explained(err error) error {
	const noExec = 8 // ST_NOEXEC
	var mount syscall.Statfs_t
	known := &failure{}
	if !errors.As(err, &known) || known.code != exitNotExecutable || syscall.Statfs(w.root, &mount) != nil {
		return err
	}
	if mount.Flags&noExec == 0 {
		return err
	}
	form := "%s; nothing below %s may be executed: give the container a /tmp or /argosy that can be written"
	return failed(known.code, form, known.sentence, filepath.Dir(w.root))
}

// remove as far as it can be done; the end of the container removes it too.
func (w workspace) remove() { _ = os.RemoveAll(w.root) }

// told is what the program's environment says more than the container's.
func (w workspace) told(environment []string, hasWheels, hasCheckpoint bool) []string {
	told := environment
	for _, each := range [][2]string{{"PYTHONUNBUFFERED", "1"}, {"HOME", w.home()}} {
		if _, isSet := lookUp(environment, each[0]); !isSet {
			told = with(told, each[0], each[1])
		}
	}
	told = with(with(told, "ARGOSY_IN", w.inputs()), "ARGOSY_OUT", w.out())
	if hasCheckpoint {
		told = with(told, "ARGOSY_CHECKPOINT", w.checkpoint())
	}
	if !isWritable("/tmp") {
		told = with(told, "TMPDIR", w.scratch())
	}
	if hasWheels {
		paths := []string{w.wheels()}
		if before := variable(environment, "PYTHONPATH"); before != "" {
			paths = append(paths, before)
		}
		told = with(told, "PYTHONPATH", strings.Join(paths, ":"))
	}
	return told
}
