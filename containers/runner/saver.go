package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	commitTick      = 250 * time.Millisecond
	pauseAfterFault = 15 * time.Second // S3 was tried for a minute by then
	changePatience  = time.Minute      // before the log says that the files keep changing
)

// saver decides when the folder of checkpoints is saved: at a commit, at intervals, and when its program was stopped.
// Nothing here makes a task fail.
type saver struct {
	saved         *checkpoints
	commit        string
	every         time.Duration // 0 = never
	over          chan struct{} // the program has ended
	done          chan struct{}
	context       context.Context // of the saves meanwhile
	abandon       context.CancelFunc
	changingSince time.Time
}

func newSaver(saved *checkpoints, every time.Duration) *saver {
	made := &saver{saved: saved, commit: filepath.Join(saved.folder, commitName), every: every}
	made.over, made.done = make(chan struct{}), make(chan struct{})
	made.context, made.abandon = context.WithCancel(context.Background())
	go made.watch()
	return made
}

func (s *saver) watch() {
	defer close(s.done)
	due, notBefore := time.Now().Add(s.every), time.Time{}
	for {
		select {
		case <-s.over:
			return
		case <-time.After(commitTick):
		}
		now := time.Now()
		if now.Before(notBefore) {
			continue
		}
		var err error
		if s.isCommitted() {
			err = s.save(s.context, "commit", true)
		} else if s.every > 0 && !now.Before(due) && !s.saved.committed {
			if err = s.save(s.context, "time", false); err == nil {
				due = now.Add(s.every)
			}
		}
		if err != nil && !errors.Is(err, errChanging) {
			notBefore = now.Add(pauseAfterFault)
		}
	}
}

func (s *saver) isCommitted() bool {
	_, err := os.Lstat(s.commit)
	return err == nil
}

func (s *saver) save(ctx context.Context, cause string, isSettled bool) error {
	before, _ := os.Lstat(s.commit)
	err := s.saved.save(ctx, cause, isSettled)
	if errors.Is(err, errChanging) {
		s.noteChange()
		return err
	}
	if err != nil {
		if s.context.Err() == nil {
			say("no checkpoint was saved: " + failureOf(err).sentence)
		}
		return err
	}
	s.changingSince = time.Time{}
	after, _ := os.Lstat(s.commit) // unless the program has committed again
	if cause == "commit" && before != nil && after != nil && os.SameFile(before, after) && before.ModTime().Equal(after.ModTime()) {
		_ = os.Remove(s.commit)
	}
	return nil
}

func (s *saver) noteChange() {
	if s.changingSince.IsZero() {
		s.changingSince = time.Now()
	}
	if time.Since(s.changingSince) > changePatience {
		say("no checkpoint was saved: files in $ARGOSY_CHECKPOINT keep changing")
		s.changingSince = time.Now().Add(365 * 24 * time.Hour)
	}
}

// end: the program failed or was stopped. The save under way is finished, then what it left is saved. After a signal that
// it did not handle, a file may be half written.
func (s *saver) end(ctx context.Context, wasStopped, wasKilled bool) {
	<-s.done
	if s.isCommitted() {
		_ = s.save(ctx, "commit", true)
	} else if wasStopped && !s.saved.committed {
		_ = s.save(ctx, "stop", !wasKilled)
	}
}

// forget: the task is done. Checkpoints that cannot be removed do no harm.
func (s *saver) forget(ctx context.Context) {
	s.abandon()
	<-s.done
	_ = s.saved.clear(ctx)
}

func say(sentence string) { fmt.Fprintln(os.Stderr, "argosy: "+printable(sentence)) }
