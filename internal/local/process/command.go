// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lookPath looks up the program in the PATH of the process's environment.
func lookPath(spec Spec) (string, error) {
	if len(spec.Command) == 0 || spec.Command[0] == "" {
		return "", errors.New("no command")
	}
	name := spec.Command[0]
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	var path string
	for _, variable := range spec.Env {
		if value, found := strings.CutPrefix(variable, "PATH="); found {
			path = value
		}
	}
	for _, folder := range filepath.SplitList(path) {
		if folder == "" {
			continue
		}
		candidate := filepath.Join(folder, name)
		if info, err := os.Stat(candidate); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("start %s: no such program in PATH", name)
}

// checkFolder returns an error if the working directory does not exist. The error of the
// system would appear to be about the program.
func checkFolder(spec Spec) error {
	if spec.Dir == "" || len(spec.Command) == 0 {
		return nil
	}
	info, err := os.Stat(spec.Dir)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return fmt.Errorf("start %s: working directory %s: %w", spec.Command[0], spec.Dir, cause(err))
	}
	return nil
}

// cause returns the error of the system without the path that the caller names anyway.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
