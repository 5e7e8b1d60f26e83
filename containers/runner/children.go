package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// What the kernel sends because of the runner's own doing, and what cannot be passed on.
var keptSignals = map[os.Signal]bool{
	syscall.SIGCHLD: true, syscall.SIGPIPE: true, syscall.SIGURG: true, syscall.SIGPROF: true, syscall.SIGABRT: true,
	syscall.SIGSEGV: true, syscall.SIGBUS: true, syscall.SIGFPE: true, syscall.SIGILL: true, syscall.SIGTRAP: true,
	syscall.SIGTTIN: true, syscall.SIGTTOU: true, syscall.SIGTSTP: true,
}

var stopSignals = map[os.Signal]bool{
	syscall.SIGTERM: true, syscall.SIGINT: true, syscall.SIGHUP: true, syscall.SIGQUIT: true,
}

// command is a program to be started. folder "": where the runner is. stdout: a descriptor.
type command struct {
	words       []string
	environment []string
	folder      string
	stdout      uintptr
	isSetup     bool // a stop signal is meant for the runner too
	isLast      bool // what it leaves behind is ended with it
}

// supervisor runs one child at a time, and knows to whom a signal belongs.
type supervisor struct {
	stopped context.Context // done once the runner itself is being stopped
	stop    context.CancelFunc

	guard sync.Mutex
	child int  // its process id; 0 while there is none
	ours  bool // whether a stop signal ends the runner although there is a child

	wasStopped, wasKilled bool // whether a child got a stop signal; whether a signal ended the last one
}

// newSupervisor hears signals from the first moment on.
func newSupervisor() *supervisor {
	children := &supervisor{}
	children.stopped, children.stop = context.WithCancel(context.Background())
	heard := make(chan os.Signal, 64)
	signal.Notify(heard)
	go func() {
		for each := range heard {
			if number, isNumber := each.(syscall.Signal); isNumber && !keptSignals[each] {
				children.pass(number)
			}
		}
	}()
	return children
}

func (s *supervisor) pass(number syscall.Signal) {
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.child != 0 {
		_ = syscall.Kill(s.child, number) // it is our child and not reaped: it cannot be another process
		s.wasStopped = s.wasStopped || stopSignals[number]
	}
	if stopSignals[number] && (s.child == 0 || s.ours) {
		s.stop()
	}
}

// current is the process id of the child; 0 while there is none.
func (s *supervisor) current() int {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.child
}

// run starts a program and waits for it. The result is its exit code, 128 more than the number of a signal.
func (s *supervisor) run(c command) (int, error) {
	child, err := s.start(c)
	if err != nil {
		return 0, err
	}
	status := s.wait(child)
	if c.isLast {
		endOthers(child)
	}
	if s.wasKilled = status.Signaled(); s.wasKilled {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

func (s *supervisor) start(c command) (int, error) {
	path, err := programPath(c)
	if err != nil {
		return 0, err
	}
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.stopped.Err() != nil {
		return 0, failed(exitStopped, "the task was stopped before its program started")
	}
	child, err := forkExec(path, c)
	if errors.Is(err, syscall.ENOEXEC) { // a script without a first line that says who reads it: execvp(3) does this
		script := c
		script.words = append([]string{"/bin/sh", path}, c.words[1:]...)
		child, err = forkExec("/bin/sh", script)
	}
	if err != nil {
		return 0, notStarted(c.words[0], err)
	}
	s.child, s.ours = child, c.isSetup
	return child, nil
}

// forkExec: the child leads a process group of its own, so that what it starts can be ended with it. On a terminal that
// group is the one in front, or it could not read.
func forkExec(path string, c command) (int, error) {
	group := &syscall.SysProcAttr{Setpgid: true}
	if isTerminal(0) {
		group = &syscall.SysProcAttr{Foreground: true, Ctty: 0}
	}
	return syscall.ForkExec(path, c.words, &syscall.ProcAttr{
		Dir: c.folder, Env: c.environment, Files: []uintptr{0, c.stdout, 2}, Sys: group,
	})
}

func isTerminal(descriptor uintptr) bool {
	var settings syscall.Termios
	_, _, err := syscall.Syscall(syscall.SYS_IOCTL, descriptor, syscall.TCGETS, uintptr(unsafe.Pointer(&settings)))
	return err == 0
}

// wait until this child has ended. As process 1 it also reaps every orphan of the container.
func (s *supervisor) wait(child int) syscall.WaitStatus {
	for {
		ended := ended(child)
		var status syscall.WaitStatus
		s.guard.Lock() // from here on its number may be another's: no signal may be under way
		_, err := syscall.Wait4(ended, &status, 0, nil)
		if ended == child {
			s.child = 0
		}
		s.guard.Unlock()
		if ended == child && err == nil {
			return status
		}
	}
}

// ended is the number of a child that has ended, which stays to be reaped.
func ended(child int) int {
	const everyone, one, exited, leave = 0, 1, 4, 0x01000000 // P_ALL, P_PID, WEXITED, WNOWAIT
	kind, id := uintptr(one), uintptr(child)
	if os.Getpid() == 1 {
		kind, id = everyone, 0
	}
	var about [16]uint64 // siginfo_t: its si_pid is the fifth of 32 bits
	for {
		_, _, err := syscall.Syscall6(syscall.SYS_WAITID, kind, id, uintptr(unsafe.Pointer(&about)), exited|leave, 0, 0)
		if err != syscall.EINTR {
			return int(int32(about[2]))
		}
	}
}

// endOthers kills what the program has left behind: as process 1 the whole container, else its process group.
func endOthers(child int) {
	if os.Getpid() == 1 {
		_ = syscall.Kill(-1, syscall.SIGKILL)
		return
	}
	_ = syscall.Kill(-child, syscall.SIGKILL)
}

// programPath finds the program as execvp(3) does, in the PATH that it will have.
func programPath(c command) (string, error) {
	name := c.words[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	folders, isSet := lookUp(c.environment, "PATH")
	if !isSet {
		folders = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	refused := error(syscall.ENOENT)
	for _, folder := range strings.Split(folders, ":") {
		path := within(c.folder, folder, name)
		if about, err := os.Stat(path); err != nil || about.IsDir() {
			continue
		}
		if syscall.Access(path, 1) == nil { // X_OK
			return path, nil
		}
		refused = syscall.EACCES
	}
	return "", notStarted(name, refused)
}

// within: a folder of PATH that is not absolute, or "", counts from where the program runs.
func within(start, folder, name string) string {
	switch {
	case strings.HasPrefix(folder, "/"):
		return folder + "/" + name
	case start == "":
		return "./" + folder + "/" + name
	}
	return start + "/" + folder + "/" + name
}

func notStarted(name string, err error) error {
	code := exitNotExecutable
	if errors.Is(err, syscall.ENOENT) {
		code = exitNotFound
	}
	return failed(code, "the program %s cannot be started: %v", name, err)
}
