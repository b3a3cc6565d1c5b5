// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package files reads the manifests that users name with --filename or as arguments of a command: files,
// folders, URLs, kustomizations and the standard input.
package files

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/resource"
)

// Stdin is the file name that means the standard input.
const Stdin = "-"

// Join returns the names of --filename and those of the arguments, in this order. It returns an error
// if a name is empty, or if there is more than one that means the standard input.
func Join(flag, args []string) ([]string, error) {
	names := slices.Concat(flag, args)
	if slices.Contains(names, "") {
		return nil, errors.New(`file name: "" is invalid: must not be empty`)
	}
	if first := slices.Index(names, Stdin); first >= 0 && slices.Contains(names[first+1:], Stdin) {
		return nil, fmt.Errorf("file name: %q is given more than once: the standard input can be read only once", Stdin)
	}
	return names, nil
}

// Split separates the arguments of a command that also takes the names of pods: an argument is a file
// if it is Stdin, ends in .yaml, .yml or .json, or contains a path separator, unless it starts with
// pod/ or pods/.
func Split(args []string) (names, pods []string) {
	for _, arg := range args {
		if isFile(arg) {
			names = append(names, arg)
		} else {
			pods = append(pods, arg)
		}
	}
	return names, pods
}

func isFile(arg string) bool {
	if strings.HasPrefix(arg, "pod/") || strings.HasPrefix(arg, "pods/") {
		return false
	}
	return slices.Contains([]string{Stdin, ".", ".."}, arg) || slices.Contains(resource.FileExtensions, filepath.Ext(arg)) ||
		strings.ContainsAny(arg, `/`+string(filepath.Separator))
}
