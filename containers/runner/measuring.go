package main

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"time"
)

const (
	firstSample = time.Second
	firstWrite  = 10 * time.Second // the time between two doubles until the meter's longest
	lastWrite   = 3 * time.Second  // how long a task's end may wait for it
	mostSamples = 240              // beyond it two of them become one
)

var ownAttempt = regexp.MustCompile(`^(s3://.+/attempts/)(\d+/\d+)/$`)

// meter is one kind of figures about a task. What is not known is nil.
type meter struct {
	folder  string
	names   []string      // of the columns; where two samples become one, the most of `most` stays, of the others the mean
	most    int           // a column
	every   time.Duration // between two samples
	longest time.Duration // between two writes
	least   time.Duration // a program that ended earlier is not worth a request
	about   func() map[string]any
	look    func(since time.Duration) []*float64 // a value of each column; none: there are no figures any more
}

// watch is the figures of one meter about one task.
type watch struct {
	meter
	environment []string
	to          address
	samples     [][]*float64 // each with its time first
}

// useAddress is where figures belong, next to the attempts' folders; "" for a task without a folder of results.
func useAddress(environment []string, folder string) string {
	own := ownAttempt.FindStringSubmatch(variable(environment, "ARGOSY_OUTPUT_URI"))
	if own == nil {
		return ""
	}
	return own[1] + folder + "/" + own[2] + ".json"
}

// measured does the work and measures the task meanwhile. It never makes a task fail.
func measured(environment []string, children *supervisor, work func() (int, error)) (int, error) {
	over := make(chan struct{})
	var running []chan struct{}
	for _, each := range []meter{taskMeter(environment, children), gpuMeter(environment)} {
		to, err := addressOf(useAddress(environment, each.folder), "its use")
		if err != nil || each.look == nil {
			continue
		}
		done := make(chan struct{})
		running = append(running, done)
		go func() {
			defer close(done)
			(&watch{meter: each, environment: environment, to: to}).run(over)
		}()
	}
	code, err := work()
	close(over)
	late := time.After(lastWrite)
	for _, done := range running {
		select {
		case <-done:
		case <-late:
			return code, err
		}
	}
	return code, err
}

func (w *watch) run(over chan struct{}) {
	begun, pause, between, writeAt := time.Now(), firstSample, firstWrite, firstWrite
	for {
		select {
		case <-over:
			w.end(time.Since(begun))
			return
		case <-time.After(pause):
		}
		since := time.Since(begun)
		row := w.look(since)
		if row == nil {
			w.end(since)
			return
		}
		w.add(append([]*float64{rounded(since.Seconds())}, row...))
		pause = w.every
		if since >= writeAt {
			between = min(2*between, w.longest)
			writeAt = since + between
			if w.write() != nil {
				return
			}
		}
	}
}

func (w *watch) end(since time.Duration) {
	if since >= w.least {
		_ = w.write()
	}
}

func (w *watch) add(row []*float64) {
	w.samples = append(w.samples, row)
	if len(w.samples) < mostSamples {
		return
	}
	kept := w.samples[:0]
	for number := 1; number < len(w.samples); number += 2 {
		early, late := w.samples[number-1], w.samples[number]
		merged := []*float64{late[0]}
		for column := range w.names {
			pair := []*float64{early[column+1], late[column+1]}
			value, _ := meanAndSum(pair)
			if column == w.most {
				value = larger(pair[0], pair[1])
			}
			merged = append(merged, value)
		}
		kept = append(kept, merged)
	}
	w.samples = kept
}

func (w *watch) write() error {
	if len(w.samples) == 0 {
		return nil
	}
	said := map[string]any{"version": 1}
	for name, value := range w.about() {
		said[name] = value
	}
	for column, name := range append([]string{"at"}, w.names...) {
		values := make([]*float64, len(w.samples))
		for row := range w.samples {
			values[row] = w.samples[row][column]
		}
		said[name] = values
	}
	text, err := json.Marshal(said)
	if err != nil {
		return err
	}
	s3 := newStore(w.environment)
	s3.attempts = 2
	defer s3.rest()
	asked := request{method: http.MethodPut, at: w.to, subject: "the use of the task", verb: "written"}
	return s3.do(context.Background(), func() request { return withText(asked, text) }, ignored)
}

func rounded(value float64) *float64 {
	value = math.Round(value*100) / 100
	return &value
}

func larger(one, other *float64) *float64 {
	if one == nil || other != nil && *other > *one {
		return other
	}
	return one
}

// meanAndSum of what is known.
func meanAndSum(given []*float64) (mean, sum *float64) {
	total, known := 0.0, 0
	for _, each := range given {
		if each != nil {
			total, known = total+*each, known+1
		}
	}
	if known == 0 {
		return nil, nil
	}
	return rounded(total / float64(known)), rounded(total)
}
