package main

import (
	"context"
	"sync"
)

// group runs functions concurrently, a bounded number at a time. The first that fails ends the others and is returned.
type group struct {
	context context.Context
	cancel  context.CancelFunc
	places  chan struct{}
	running sync.WaitGroup
	guard   sync.Mutex
	first   error
}

func newGroup(parent context.Context, most int) *group {
	made := &group{places: make(chan struct{}, most)}
	made.context, made.cancel = context.WithCancel(parent)
	return made
}

// start waits for a free place. Nothing is started any more once something has failed.
func (g *group) start(work func() error) {
	select {
	case g.places <- struct{}{}:
	case <-g.context.Done():
		g.fail(g.context.Err())
		return
	}
	g.running.Add(1)
	go func() {
		defer g.running.Done()
		if err := work(); err != nil {
			g.fail(err)
		}
		<-g.places
	}()
}

func (g *group) fail(err error) {
	g.guard.Lock()
	if g.first == nil {
		g.first = err
	}
	g.guard.Unlock()
	g.cancel()
}

// wait for everything that was started.
func (g *group) wait() error {
	g.running.Wait()
	g.cancel()
	return g.first
}
