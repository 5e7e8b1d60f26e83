package main

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// quiet is how long a pipe stays silent, after its program's end, until processes that still hold it open are no longer awaited.
const quiet = 300 * time.Millisecond

// copier brings a program's output to the log and into the file that becomes its result, in pieces, while it runs.
type copier struct {
	into  *os.File // what the program writes to
	from  *os.File
	sinks [2]*sink
	done  chan struct{}

	guard sync.Mutex
	over  bool // whether the program has ended
}

// sink never fails: the first refusal is kept, and the rest is dropped.
type sink struct {
	file *os.File
	err  error
}

func (s *sink) write(data []byte) {
	if s.err == nil {
		_, s.err = s.file.Write(data)
	}
}

func newCopier(path string, log *os.File) (*copier, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	from, into, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	made := &copier{into: into, from: from, done: make(chan struct{}), sinks: [2]*sink{{file: file}, {file: log}}}
	go made.copy()
	return made, nil
}

func (c *copier) copy() {
	defer close(c.done)
	piece := make([]byte, 64<<10)
	for {
		wasOver := c.patience()
		count, err := c.from.Read(piece)
		for _, each := range c.sinks {
			each.write(piece[:count])
		}
		if err != nil && (wasOver || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return
		}
	}
}

// patience before a read: without end while the program runs. The result says whether it does not.
func (c *copier) patience() bool {
	c.guard.Lock()
	defer c.guard.Unlock()
	if c.over {
		_ = c.from.SetReadDeadline(time.Now().Add(quiet))
	}
	return c.over
}

// descriptor is what the program writes to. Writing to it waits, as programs expect.
func (c *copier) descriptor() uintptr {
	_ = syscall.SetNonblock(int(c.into.Fd()), false)
	return c.into.Fd()
}

// end is called once the program has ended: what it wrote is in the file then. The error is the file's.
func (c *copier) end() error {
	_ = c.into.Close()
	c.guard.Lock()
	c.over = true
	_ = c.from.SetReadDeadline(time.Now()) // the read that waits comes back and looks at what has changed
	c.guard.Unlock()
	<-c.done
	_ = c.from.Close()
	if err := c.sinks[0].file.Close(); c.sinks[0].err == nil {
		c.sinks[0].err = err
	}
	return c.sinks[0].err
}
