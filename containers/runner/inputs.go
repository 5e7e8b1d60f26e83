package main

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// input is an object, and the file that it becomes.
type input struct {
	at   address
	path string
}

// plannedInputs says which objects the program reads and where they lie; their folders are there.
func plannedInputs(ctx context.Context, s3 *store, addresses []string, folder string) ([]input, error) {
	var inputs []input
	named := map[string]address{}
	add := func(name string, at address) error {
		if !isPath(name) {
			return wrong("the key of the input %s is not a file path", at)
		}
		if other, taken := named[name]; taken {
			return wrong("two inputs would be the file %s: %s and %s", name, other, at)
		}
		named[name] = at
		inputs = append(inputs, input{at, filepath.Join(folder, name)})
		return nil
	}
	for _, each := range addresses {
		at, err := addressOf(each, "the input")
		if err != nil {
			return nil, err
		}
		if at.key != "" && !strings.HasSuffix(at.key, "/") {
			err = add(path.Base(at.key), at)
		} else {
			err = addBelow(ctx, s3, at, add)
		}
		if err != nil {
			return nil, err
		}
	}
	return inputs, makeFolders(inputs, named, folder)
}

func addBelow(ctx context.Context, s3 *store, at address, add func(string, address) error) error {
	found := false
	err := s3.below(ctx, at, "the input", func(key string) error {
		found = true
		if strings.HasSuffix(key, "/") { // what consoles make to show an empty folder
			return nil
		}
		return add(strings.TrimPrefix(key, at.key), address{at.bucket, key})
	})
	if err == nil && !found {
		return wrong("there is no object below the input %s", at)
	}
	return err
}

// isPath: relative, and every part of it the name of something.
func isPath(name string) bool {
	for _, part := range strings.Split(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return !strings.ContainsRune(name, 0)
}

func makeFolders(inputs []input, named map[string]address, folder string) error {
	made := map[string]bool{folder: true}
	for _, each := range inputs {
		parent := filepath.Dir(each.path)
		if made[parent] {
			continue
		}
		for above := parent; above != folder; above = filepath.Dir(above) {
			if file, taken := named[above[len(folder)+1:]]; taken {
				return wrong("the input %s is a file where %s needs a folder", file, each.at)
			}
		}
		if err := os.MkdirAll(parent, 0o755); err != nil {
			return err
		}
		made[parent] = true
	}
	return nil
}
