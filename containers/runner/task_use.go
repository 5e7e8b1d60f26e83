package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	cheap        = 10 * time.Second // the shortest program that is worth a request to S3, where requests cost money
	ticksASecond = 100              // of /proc/PID/stat, on every architecture of Go's
	mib          = 1 << 20
)

// usage is the processor seconds so far, and the bytes of memory now.
type usage struct{ seconds, bytes float64 }

// taskMeter reads the vCPUs, the mean since the last sample, and the memory of a task: as process 1 those of the
// container, else those of its program's process group.
func taskMeter(environment []string, children *supervisor) meter {
	read := func() (usage, bool) { return controlGroup("/sys/fs/cgroup") }
	if os.Getpid() != 1 {
		read = func() (usage, bool) { return processGroup("/proc", children.current()) }
	}
	made := meter{folder: "use", names: []string{"vcpus", "memoryMib"}, most: 1, every: 5 * time.Second}
	made.longest, made.about = 10*time.Minute, func() map[string]any { return nil }
	if variable(environment, "AWS_ENDPOINT_URL") == "" {
		made.least = cheap
	}
	before, at := 0.0, time.Duration(0)
	if began, isKnown := read(); isKnown { // a container's init has used some already
		before = began.seconds
	}
	made.look = func(since time.Duration) []*float64 {
		now, isKnown := read()
		if !isKnown {
			return []*float64{nil, nil}
		}
		vcpus := max(0, now.seconds-before) / (since - at).Seconds()
		before, at = now.seconds, since
		memory := float64(int64(now.bytes/mib + 0.5))
		return []*float64{rounded(vcpus), &memory}
	}
	return made
}

// controlGroup reads a container's own, of version 2 or 1, in this folder. Of its memory the part is left out that the
// kernel takes back at once, files that were not used lately.
func controlGroup(folder string) (usage, bool) {
	micros, isKnown := figureOf(folder+"/cpu.stat", "usage_usec")
	held, err := os.ReadFile(folder + "/memory.current")
	spare, _ := figureOf(folder+"/memory.stat", "inactive_file")
	if isKnown && err == nil {
		return usage{micros / 1e6, float64(number(string(held))) - spare}, true
	}
	nanos, err := os.ReadFile(folder + "/cpuacct/cpuacct.usage")
	if err != nil {
		return usage{}, false
	}
	held, err = os.ReadFile(folder + "/memory/memory.usage_in_bytes")
	spare, _ = figureOf(folder+"/memory/memory.stat", "total_inactive_file")
	return usage{float64(number(string(nanos))) / 1e9, float64(number(string(held))) - spare}, err == nil
}

// figureOf is what follows a name at the start of a line.
func figureOf(path, name string) (float64, bool) {
	text, _ := os.ReadFile(path)
	for _, line := range strings.Split(string(text), "\n") {
		if value, isIt := strings.CutPrefix(line, name+" "); isIt {
			return float64(number(value)), true
		}
	}
	return 0, false
}

// processGroup adds up the processes of a group, with those that they have waited for. There is none before the
// program has started.
func processGroup(proc string, group int) (usage, bool) {
	found := usage{}
	paths, _ := filepath.Glob(proc + "/[0-9]*/stat")
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		_, after, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
		fields := strings.Fields(after) // the first is the third of proc(5): the state
		if len(fields) < 22 || fields[2] != strconv.Itoa(group) {
			continue
		}
		for _, ticks := range fields[11:15] {
			found.seconds += float64(number(ticks)) / ticksASecond
		}
		found.bytes += float64(number(fields[21]) * int64(os.Getpagesize()))
	}
	return found, group != 0
}
