package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// What becomes a task's result: the files of a folder, standard output, or nothing.
const (
	resultFolder = "folder"
	resultStdout = "stdout"
	resultNone   = "none"
)

// order is what a task of a run with a program is to do, as its environment says it. Addresses that are "" are not set.
type order struct {
	result  string
	part    string // the task's final object
	output  string // the attempt's own folder, ends in /
	job     string
	inputs  []string
	attempt string // its number, which the part carries as metadata
	first   int    // parts of earlier attempts are another version's of the program; 0 = none are

	checkpoint      string // where the task's checkpoints belong, ends in /; "" = it has none
	checkpointEvery time.Duration
}

// overridden is the command and the variables of a task: those too long for ECS are in an object.
func overridden(children *supervisor, arguments, environment []string) ([]string, []string, error) {
	uri := variable(environment, "ARGOSY_OVERRIDES")
	if uri == "" {
		return arguments, environment, nil
	}
	at, err := addressOf(uri, "the command")
	if err != nil {
		return nil, nil, err
	}
	var text []byte
	err = attempt{children: children}.unlessStopped(func() (err error) {
		text, err = newStore(environment).read(children.stopped, at, "the command")
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	var document struct {
		Command     []string          `json:"command"`
		Environment map[string]string `json:"environment"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, nil, wrong("the command %s cannot be read: %v", at, err)
	}
	if document.Command == nil || document.Environment == nil {
		return nil, nil, wrong("the command %s cannot be read: it has no command or no environment", at)
	}
	for name, value := range document.Environment {
		environment = with(environment, name, value)
	}
	return document.Command, environment, nil
}

// orderFrom is nil when the program is to be started and nothing else.
func orderFrom(environment []string) (*order, error) {
	number, isSet := lookUp(environment, "ARGOSY_RUNNER")
	if !isSet {
		return nil, nil
	}
	if number != protocol {
		return nil, wrong("the task asks for protocol %q of the runner, and this runner supports protocol %s", number, protocol)
	}
	asked := order{
		result:  variable(environment, "ARGOSY_RESULT"),
		part:    variable(environment, "ARGOSY_PART_URI"),
		output:  variable(environment, "ARGOSY_OUTPUT_URI"),
		job:     variable(environment, "ARGOSY_JOB"),
		attempt: variable(environment, "ARGOSY_TASK_ATTEMPT"),
	}
	if first, err := strconv.Atoi(variable(environment, "ARGOSY_FIRST_ATTEMPT")); err == nil {
		asked.first = first
	}
	switch asked.result {
	case "":
		asked.result = resultFolder
	case resultFolder, resultStdout, resultNone:
	default:
		return nil, wrong("ARGOSY_RESULT is %q; it may be folder, stdout or none", asked.result)
	}
	var err error
	if asked.inputs, err = inputsFrom(variable(environment, "ARGOSY_INPUTS")); err != nil {
		return nil, err
	}
	return &asked, asked.readCheckpoint(environment)
}

func (o *order) readCheckpoint(environment []string) error {
	o.checkpoint = variable(environment, "ARGOSY_CHECKPOINT_URI")
	every := variable(environment, "ARGOSY_CHECKPOINT_SECONDS")
	if o.checkpoint == "" || every == "" {
		return nil
	}
	seconds, err := strconv.ParseUint(every, 10, 31)
	if err != nil || !strings.HasSuffix(o.checkpoint, "/") {
		return wrong("ARGOSY_CHECKPOINT_URI is %q and ARGOSY_CHECKPOINT_SECONDS %q; they may be an address that ends in / and"+
			" a number of seconds", o.checkpoint, every)
	}
	o.checkpointEvery = time.Duration(seconds) * time.Second
	return nil
}

func inputsFrom(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var given []string
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return nil, wrong("ARGOSY_INPUTS is not a list of addresses in JSON: %v", err)
	}
	for _, each := range given {
		if _, err := addressOf(each, "the input"); err != nil {
			return nil, err
		}
	}
	return given, nil
}

// address is s3://bucket/key; the key may be "".
type address struct{ bucket, key string }

func (a address) String() string { return "s3://" + a.bucket + "/" + a.key }

func addressOf(text, what string) (address, error) {
	rest, isS3 := strings.CutPrefix(text, "s3://")
	bucket, key, _ := strings.Cut(rest, "/")
	if !isS3 || bucket == "" {
		return address{}, wrong("%s %q is not s3://BUCKET/KEY", what, text)
	}
	return address{bucket, key}, nil
}

// variable is the value of an environment variable, "" without it.
func variable(environment []string, name string) string {
	value, _ := lookUp(environment, name)
	return value
}

func lookUp(environment []string, name string) (string, bool) {
	for _, each := range environment {
		if value, found := strings.CutPrefix(each, name+"="); found {
			return value, true
		}
	}
	return "", false
}

// with has the variable set to the value, whatever it was before.
func with(environment []string, name, value string) []string {
	changed := make([]string, 0, len(environment)+1)
	for _, each := range environment {
		if !strings.HasPrefix(each, name+"=") {
			changed = append(changed, each)
		}
	}
	return append(changed, name+"="+value)
}
