package main

import (
	"fmt"
	"os"
	"runtime/debug"
)

// attempt is one attempt of a task: fetch, set up, run, upload.
type attempt struct {
	order       order
	words       []string
	environment []string
	work        workspace
	children    *supervisor
}

// run gives the exit code of the program, unless something else came between.
func (a attempt) run() (int, error) {
	s3 := newStore(a.environment)
	asked := noJob()
	err := a.unlessStopped(func() (err error) {
		if a.order.job != "" {
			if asked, err = a.readJob(s3); err != nil {
				return err
			}
		}
		return a.fetch(s3, asked)
	})
	if err != nil {
		return 0, err
	}
	saved, err := a.restore(s3)
	if err != nil {
		return 0, err
	}
	told := a.work.told(a.environment, asked.has(kindWheel), saved != nil)
	folder := ""
	if asked.has(kindProgram) {
		folder = a.work.program()
	}
	if err := a.setUp(asked.setup, told, folder); err != nil {
		return 0, err
	}
	s3.rest()
	debug.FreeOSMemory() // the program may need it for hours
	measuredProgram := func() (int, error) {
		return measured(a.environment, a.children, func() (int, error) { return a.program(told, folder) })
	}
	if saved != nil {
		return a.savedWhile(saved, measuredProgram, func() error { return a.deliver(s3, asked) })
	}
	code, err := measuredProgram()
	if err != nil || code != 0 {
		return code, err
	}
	return 0, a.unlessStopped(func() error { return a.deliver(s3, asked) })
}

// restore is nil for a task without checkpoints.
func (a attempt) restore(s3 *store) (*checkpoints, error) {
	if a.order.checkpoint == "" {
		return nil, nil
	}
	saved, err := newCheckpoints(a.order, a.work, s3)
	if err != nil {
		return nil, err
	}
	return saved, a.unlessStopped(func() error {
		found, err := saved.restore(a.children.stopped)
		if found != nil {
			form := "restored the checkpoint of attempt %d: %d files, %d bytes"
			say(fmt.Sprintf(form, found.attempt, len(found.Files), found.Bytes))
		}
		return err
	})
}

// savedWhile saves the folder of checkpoints while the program runs and, unless it succeeds, once it has ended.
func (a attempt) savedWhile(saved *checkpoints, program func() (int, error), deliver func() error) (int, error) {
	saving := newSaver(saved, a.order.checkpointEvery)
	defer saving.abandon()
	code, err := program()
	close(saving.over)
	if err != nil {
		return code, err
	}
	return code, a.unlessStopped(func() error {
		if code == 0 {
			if err = deliver(); err == nil {
				saving.forget(a.children.stopped)
				return nil
			}
		}
		saving.end(a.children.stopped, a.children.wasStopped, a.children.wasKilled)
		return err
	})
}

// unlessStopped: what was cut short by a stop signal is not a fault of S3.
func (a attempt) unlessStopped(work func() error) error {
	err := work()
	if err != nil && a.children.stopped.Err() != nil {
		return failed(exitStopped, "the task was stopped before it finished")
	}
	return err
}

func (a attempt) readJob(s3 *store) (job, error) {
	at, err := addressOf(a.order.job, "the job")
	if err != nil {
		return job{}, err
	}
	text, err := s3.read(a.children.stopped, at, "the job")
	if err != nil {
		return job{}, err
	}
	return jobFrom(text, at.String())
}

// fetch has archives and inputs under way together, then unpacks the archives in their order: later over earlier.
func (a attempt) fetch(s3 *store, asked job) error {
	archives := newGroup(a.children.stopped, connections)
	for number, each := range asked.archives {
		if each.isInChunks() {
			if err := a.fetchInChunks(s3, archives, each); err != nil {
				archives.fail(err)
			}
			continue
		}
		archives.start(func() error { return s3.downloadArchive(archives.context, each, a.work.archive(number)) })
	}
	if err := a.fetchInputs(s3, archives, a.order.inputs, a.work.inputs()); err != nil {
		archives.fail(err)
	}
	if err := archives.wait(); err != nil {
		return err
	}
	return a.unpack(asked)
}

// fetchInChunks has a program's uploaded folder under way.
func (a attempt) fetchInChunks(s3 *store, under *group, program archive) error {
	if err := os.MkdirAll(a.work.program(), 0o700); err != nil {
		return err
	}
	return a.fetchInputs(s3, under, []string{program.at.String()}, a.work.program())
}

func (a attempt) fetchInputs(s3 *store, under *group, addresses []string, into string) error {
	planned, err := plannedInputs(under.context, s3, addresses, into)
	if err != nil {
		return err
	}
	for _, each := range planned.files {
		if each.isObject {
			under.start(func() error { return s3.download(under.context, each.at, "the input", each.path, -1) })
		}
	}
	for _, folder := range planned.folders {
		folder.pieces(func(wanted chunk, files []storedFile) {
			under.start(func() error {
				return s3.downloadChunk(under.context, folder.store, wanted, files, into)
			})
		})
	}
	return nil
}

func (a attempt) unpack(asked job) error {
	for number, each := range asked.archives {
		if each.isInChunks() {
			continue
		}
		folder := a.work.program()
		if each.kind == kindWheel {
			folder = a.work.wheels()
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		if err := unpack(a.children.stopped, each, a.work.archive(number), folder); err != nil {
			return err
		}
		if err := os.Remove(a.work.archive(number)); err != nil {
			return err
		}
	}
	return nil
}

// setUp runs the text that prepares the program's folder. Its output is the log's: standard output may be the result.
func (a attempt) setUp(text string, told []string, folder string) error {
	if text == "" {
		return nil
	}
	words := []string{"sh", "-c", text}
	code, err := a.children.run(command{words: words, environment: told, folder: folder, stdout: 2, isSetup: true})
	if err == nil && a.children.stopped.Err() != nil {
		return failed(exitStopped, "the task was stopped before its program started")
	}
	if err == nil && code != 0 {
		return failed(code, "the setup ended with exit code %d, so the program was not started", code)
	}
	return err
}

func (a attempt) program(told []string, folder string) (int, error) {
	started := command{words: a.words, environment: told, folder: folder, stdout: 1, isLast: true}
	if a.order.result != resultStdout {
		code, err := a.children.run(started)
		return code, a.work.explained(err)
	}
	copied, err := newCopier(a.work.stdout(), os.Stdout)
	if err != nil {
		return 0, err
	}
	started.stdout = copied.descriptor()
	code, err := a.children.run(started)
	err = a.work.explained(err)
	kept := copied.end()
	if err == nil && code == 0 && kept != nil {
		return 0, temporary("standard output could not be kept: %v", kept)
	}
	return code, err
}

// deliver uploads what the program has left.
func (a attempt) deliver(s3 *store, asked job) error {
	switch a.order.result {
	case resultFolder:
		return uploadFolder(a.children.stopped, s3, a.order, a.work.out(), asked)
	case resultStdout:
		about, err := os.Stat(a.work.stdout())
		if err != nil {
			return err
		}
		if about.Size() == 0 {
			return failed(exitNoResult, "the program succeeded but wrote nothing to its standard output, which is its result")
		}
		return uploadPart(a.children.stopped, s3, a.order, left{path: a.work.stdout(), size: about.Size()})
	}
	return nil
}
