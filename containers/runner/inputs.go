package main

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// input is an object, and the file that it becomes.
type input struct {
	at       address
	path     string
	isObject bool // else it is of an uploaded folder
}

// inputs are a task's objects and uploaded folders.
type inputs struct {
	files   []input
	folders []*uploadedFolder
}

// plannedInputs says what the program reads and where it lies; the files' folders are there, and uploaded files too,
// without their content.
func plannedInputs(ctx context.Context, s3 *store, addresses []string, folder string) (inputs, error) {
	var planned inputs
	named, known := map[string]address{}, map[address]uploadedFolder{}
	add := func(name string, at address, isObject bool) error {
		if !isPath(name) {
			return wrong("the key of the input %s is not a file path", at)
		}
		if other, taken := named[name]; taken {
			return wrong("two inputs would be the file %s: %s and %s", name, other, at)
		}
		named[name] = at
		planned.files = append(planned.files, input{at, filepath.Join(folder, name), isObject})
		return nil
	}
	for _, each := range addresses {
		at, err := addressOf(each, "the input")
		if err != nil {
			return planned, err
		}
		uploaded, err := folderAt(ctx, s3, at, known)
		if err != nil {
			return planned, err
		}
		if uploaded != nil {
			err = addUploaded(uploaded, at, add)
			planned.addFolder(uploaded)
		} else if at.key != "" && !strings.HasSuffix(at.key, "/") {
			err = add(path.Base(at.key), at, true)
		} else {
			err = addBelow(ctx, s3, at, add)
		}
		if err != nil {
			return planned, err
		}
	}
	if err := makeFolders(planned.files, named, folder); err != nil {
		return planned, err
	}
	for _, each := range planned.folders {
		if err := each.layOut(folder); err != nil {
			return planned, err
		}
	}
	return planned, nil
}

// addFolder puts files of one folder that are named one by one together, because small files share a chunk.
func (p *inputs) addFolder(found *uploadedFolder) {
	for _, each := range p.folders {
		if found.isFile && each.isFile && each.document == found.document {
			each.files = append(each.files, found.files...)
			sort.SliceStable(each.files, func(i, j int) bool { return each.files[i].start < each.files[j].start })
			return
		}
	}
	p.folders = append(p.folders, found)
}

// addUploaded: names are checked here, and links may not lead out.
func addUploaded(uploaded *uploadedFolder, at address, add func(string, address, bool) error) error {
	of := func(name string) address {
		if at.key != "" && !strings.HasSuffix(at.key, "/") {
			return at
		}
		return address{at.bucket, at.key + name}
	}
	for _, each := range uploaded.files {
		if err := add(each.name, of(each.name), false); err != nil {
			return err
		}
	}
	for _, each := range uploaded.links {
		if !filepath.IsLocal(path.Join(path.Dir(each.name), each.target)) || path.IsAbs(each.target) {
			return wrong("the input %s is a link out of its folder", of(each.name))
		}
		if err := add(each.name, of(each.name), false); err != nil {
			return err
		}
	}
	for _, each := range uploaded.emptyFolders {
		if !isPath(each) {
			return wrong("the key of the input %s is not a file path", of(each))
		}
	}
	return nil
}

func addBelow(ctx context.Context, s3 *store, at address, add func(string, address, bool) error) error {
	found := false
	err := s3.below(ctx, at, "the input", func(key string) error {
		found = true
		if strings.HasSuffix(key, "/") { // what consoles make to show an empty folder
			return nil
		}
		return add(strings.TrimPrefix(key, at.key), address{at.bucket, key}, true)
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
