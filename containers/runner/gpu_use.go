package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	firstSample   = time.Second
	betweenUses   = 10 * time.Second
	betweenWrites = time.Minute
	driverAnswers = 10 * time.Second // one that takes longer hangs
	lastWrite     = 3 * time.Second  // how long a task's end may wait for it
	mostSamples   = 240              // beyond it two of them become one
	gpuFigures    = "utilization.gpu,memory.used,memory.total,power.draw,name"
)

var (
	ownAttempt = regexp.MustCompile(`^(s3://.+/attempts/)(\d+/\d+)/$`)
	shareLimit = regexp.MustCompile(`^0=(\d+)M`)
)

// sample: what the driver does not say is nil.
type sample struct{ at, use, memory, watts *float64 }

// gpuUse is what a task uses of its GPUs. The runner cannot tell the processes of a container that shares a GPU from
// its neighbours', so its memory is not known.
type gpuUse struct {
	environment []string
	to          address
	about       map[string]any
	shareMib    int
	samples     []sample
}

// gpuUseAddress is where the figures belong, next to the attempts' folders; "" for a task without a GPU.
func gpuUseAddress(environment []string) string {
	own := ownAttempt.FindStringSubmatch(variable(environment, "ARGOSY_OUTPUT_URI"))
	devices := variable(environment, "NVIDIA_VISIBLE_DEVICES") // an image's own says "all"
	if own == nil || !strings.HasPrefix(devices, "GPU-") && !strings.HasPrefix(devices, "MIG-") {
		return ""
	}
	return own[1] + "gpu-use/" + own[2] + ".json"
}

// measured does the work and measures the GPUs meanwhile, if the task has any. It never makes a task fail.
func measured(environment []string, work func() (int, error)) (int, error) {
	to, err := addressOf(gpuUseAddress(environment), "the use of its GPUs")
	if err != nil {
		return work()
	}
	use := &gpuUse{environment: environment, to: to}
	if found := shareLimit.FindStringSubmatch(variable(environment, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT")); found != nil {
		use.shareMib, _ = strconv.Atoi(found[1])
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		use.watch(over)
	}()
	code, err := work()
	close(over)
	select {
	case <-done:
	case <-time.After(lastWrite):
	}
	return code, err
}

func (u *gpuUse) watch(over chan struct{}) {
	begun, written, pause := time.Now(), time.Now(), firstSample
	for {
		select {
		case <-over:
			u.write()
			return
		case <-time.After(pause):
		}
		pause = betweenUses
		if !u.look(time.Since(begun)) {
			u.write()
			return
		}
		if time.Since(written) >= betweenWrites {
			written = time.Now()
			if u.write() != nil {
				return
			}
		}
	}
}

// look is false if the driver does not answer.
func (u *gpuUse) look(since time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), driverAnswers)
	defer cancel()
	devices := variable(u.environment, "NVIDIA_VISIBLE_DEVICES")
	path, err := programPath(command{words: []string{"nvidia-smi"}, environment: u.environment})
	if err != nil {
		return false
	}
	asked := exec.CommandContext(ctx, path, "-i", devices, "--query-gpu="+gpuFigures, "--format=csv,noheader,nounits")
	asked.Env, asked.WaitDelay = u.environment, time.Second
	text, _ := asked.Output() // as process 1 the runner may have reaped it already: its words count, not its end
	reader := csv.NewReader(strings.NewReader(string(text)))
	reader.TrimLeadingSpace, reader.FieldsPerRecord = true, strings.Count(gpuFigures, ",")+1
	rows, err := reader.ReadAll()
	if err != nil || len(rows) == 0 || ctx.Err() != nil {
		return false
	}
	seen, total := sample{at: rounded(since.Seconds())}, (*float64)(nil)
	var uses, powers []*float64
	for _, row := range rows {
		uses, powers = append(uses, figure(row[0])), append(powers, figure(row[3]))
		seen.memory, total = larger(seen.memory, figure(row[1])), larger(total, figure(row[2]))
	}
	seen.use, _ = meanAndSum(uses)
	_, seen.watts = meanAndSum(powers)
	if u.shareMib > 0 {
		seen.memory = nil
	}
	name := strings.TrimSpace(rows[0][4])
	u.about = map[string]any{"gpus": len(rows), "name": name, "totalMib": total, "shareMib": u.shareMib}
	u.add(seen)
	return true
}

func (u *gpuUse) add(seen sample) {
	u.samples = append(u.samples, seen)
	if len(u.samples) < mostSamples {
		return
	}
	kept := u.samples[:0]
	for number := 1; number < len(u.samples); number += 2 {
		early, late := u.samples[number-1], u.samples[number]
		merged := sample{at: late.at, memory: larger(early.memory, late.memory)}
		merged.use, _ = meanAndSum([]*float64{early.use, late.use})
		merged.watts, _ = meanAndSum([]*float64{early.watts, late.watts})
		kept = append(kept, merged)
	}
	u.samples = kept
}

func (u *gpuUse) write() error {
	if len(u.samples) == 0 {
		return nil
	}
	columns := map[string][]*float64{}
	for _, each := range u.samples {
		columns["at"] = append(columns["at"], each.at)
		columns["use"] = append(columns["use"], each.use)
		columns["memoryMib"] = append(columns["memoryMib"], each.memory)
		columns["watts"] = append(columns["watts"], each.watts)
	}
	said := map[string]any{"version": 1}
	for name, value := range u.about {
		said[name] = value
	}
	for name, values := range columns {
		said[name] = values
	}
	text, err := json.Marshal(said)
	if err != nil {
		return err
	}
	s3 := newStore(u.environment)
	s3.attempts = 2
	defer s3.rest()
	asked := request{method: http.MethodPut, at: u.to, subject: "the use of its GPUs", verb: "written"}
	return s3.do(context.Background(), func() request { return withText(asked, text) }, ignored)
}

// figure is nil for "[N/A]" and the like, which MIG devices have.
func figure(text string) *float64 {
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return &value
}

func rounded(value float64) *float64 {
	value = math.Round(value*10) / 10
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
