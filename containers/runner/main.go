// Command argosy-runner is the init of every container of Argosy: it starts the image's program, passes signals on, and
// reaps what is left behind. For a task that speaks the runner's protocol it also fetches the program and its inputs
// before, and uploads its result after it. README.md has the protocol.
package main

import (
	"fmt"
	"os"
)

const protocol = "1" // model/run_terms.RUNNER_PROTOCOL: the only one that this runner knows

// marker is the entry point of a run with a program. Docker hands it on in front of the command.
const marker = "argosy:program"

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" { // Docker asks this at every start
		fmt.Println("argosy-runner protocol " + protocol)
		return
	}
	code, err := run(os.Args[1:], os.Environ())
	if os.Getpid() == 1 && (code != 0 || err != nil) { // only then is the control group this container's
		if said := outOfMemory("/sys/fs/cgroup"); said != "" {
			fmt.Fprintln(os.Stderr, "argosy: "+said)
		}
	}
	if err != nil {
		problem := failureOf(err)
		say(problem.sentence)
		code = problem.code
	}
	os.Exit(code)
}

// run is the whole life of the runner; the result is its exit code.
func run(arguments, environment []string) (int, error) {
	children := newSupervisor()
	arguments, environment, err := overridden(children, arguments, environment)
	if err != nil {
		return 0, err
	}
	words, err := wordsOf(arguments)
	if err != nil {
		return 0, err
	}
	asked, err := orderFrom(environment)
	if err != nil {
		return 0, err
	}
	if asked == nil {
		return measured(environment, children, func() (int, error) {
			return children.run(command{words: words, environment: environment, stdout: os.Stdout.Fd()})
		})
	}
	work, err := newWorkspace(variable(environment, "TMPDIR"))
	if err != nil {
		return 0, err
	}
	defer work.remove()
	return attempt{order: *asked, words: words, environment: environment, work: work, children: children}.run()
}

// wordsOf is the program and its arguments: Docker puts `--` before them, the task definition the marker.
func wordsOf(arguments []string) ([]string, error) {
	for _, dropped := range []string{"--", marker} {
		if len(arguments) > 0 && arguments[0] == dropped {
			arguments = arguments[1:]
		}
	}
	if len(arguments) == 0 {
		return nil, wrong("there is no program to run: the task has no command")
	}
	return arguments, nil
}
