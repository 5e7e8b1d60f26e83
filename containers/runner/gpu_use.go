package main

import (
	"context"
	"encoding/csv"
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	driverAnswers = 10 * time.Second // one that takes longer hangs
	gpuFigures    = "utilization.gpu,memory.used,memory.total,power.draw,name"
)

var shareLimit = regexp.MustCompile(`^0=(\d+)M`)

// gpuUse is what a task uses of its GPUs. The runner cannot tell the processes of a container that shares a GPU from
// its neighbours', so its memory is not known.
type gpuUse struct {
	environment []string
	about       map[string]any
	shareMib    int
}

// gpuMeter measures nothing for a task to which no GPU was given.
func gpuMeter(environment []string) meter {
	made := meter{folder: "gpu-use", names: []string{"use", "memoryMib", "watts"}, most: 1}
	made.every, made.longest = 10*time.Second, time.Minute
	devices := variable(environment, "NVIDIA_VISIBLE_DEVICES") // an image's own says "all"
	if !strings.HasPrefix(devices, "GPU-") && !strings.HasPrefix(devices, "MIG-") {
		return made
	}
	use := &gpuUse{environment: environment}
	if found := shareLimit.FindStringSubmatch(variable(environment, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT")); found != nil {
		use.shareMib, _ = strconv.Atoi(found[1])
	}
	made.look, made.about = use.look, func() map[string]any { return use.about }
	return made
}

// look is nil if the driver does not answer.
func (u *gpuUse) look(time.Duration) []*float64 {
	ctx, cancel := context.WithTimeout(context.Background(), driverAnswers)
	defer cancel()
	devices := variable(u.environment, "NVIDIA_VISIBLE_DEVICES")
	path, err := programPath(command{words: []string{"nvidia-smi"}, environment: u.environment})
	if err != nil {
		return nil
	}
	asked := exec.CommandContext(ctx, path, "-i", devices, "--query-gpu="+gpuFigures, "--format=csv,noheader,nounits")
	asked.Env, asked.WaitDelay = u.environment, time.Second
	text, _ := asked.Output() // as process 1 the runner may have reaped it already: its words count, not its end
	reader := csv.NewReader(strings.NewReader(string(text)))
	reader.TrimLeadingSpace, reader.FieldsPerRecord = true, strings.Count(gpuFigures, ",")+1
	rows, err := reader.ReadAll()
	if err != nil || len(rows) == 0 || ctx.Err() != nil {
		return nil
	}
	var uses, powers []*float64
	var memory, total *float64
	for _, row := range rows {
		uses, powers = append(uses, figure(row[0])), append(powers, figure(row[3]))
		memory, total = larger(memory, figure(row[1])), larger(total, figure(row[2]))
	}
	use, _ := meanAndSum(uses)
	_, watts := meanAndSum(powers)
	if u.shareMib > 0 {
		memory = nil
	}
	name := strings.TrimSpace(rows[0][4])
	u.about = map[string]any{"gpus": len(rows), "name": name, "totalMib": total, "shareMib": u.shareMib}
	return []*float64{use, memory, watts}
}

// figure is nil for "[N/A]" and the like, which MIG devices have.
func figure(text string) *float64 {
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return &value
}
