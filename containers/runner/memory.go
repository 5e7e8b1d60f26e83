package main

import (
	"os"
	"strconv"
	"strings"
)

// unlimited: what control groups of version 1 say where there is no limit is 8 EiB less a page.
const unlimited = 1 << 62

// outOfMemory says so where the kernel has killed a process of this container for its memory; "" where it has not, or
// where that cannot be known. Engines do not always: podman does not with control groups of version 1, and none says it when
// the program has outlived one of its own processes. folder: where the container's own control groups are mounted.
func outOfMemory(folder string) string {
	for _, each := range []struct{ events, limit string }{
		{"/memory.events", "/memory.max"},
		{"/memory/memory.oom_control", "/memory/memory.limit_in_bytes"},
	} {
		events, err := os.ReadFile(folder + each.events)
		if err != nil || killed(string(events)) == 0 {
			continue
		}
		limit, _ := os.ReadFile(folder + each.limit)
		if bytes := number(string(limit)); 0 < bytes && bytes < unlimited {
			return "killed: out of memory, of which the task may use " + grouped(bytes>>20) + " MiB"
		}
		return "killed: out of memory"
	}
	return ""
}

// killed is how many processes the kernel has killed, which both versions call oom_kill.
func killed(events string) int64 {
	for _, line := range strings.Split(events, "\n") {
		if count, found := strings.CutPrefix(line, "oom_kill "); found {
			return number(count)
		}
	}
	return 0
}

func number(text string) int64 {
	value, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return value
}
