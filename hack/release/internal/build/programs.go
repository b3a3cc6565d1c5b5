// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// platform is an operating system and an architecture, in Go's names.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

// file returns the name of a program's file.
func (p platform) file(program string) string {
	if p.os == "windows" {
		return program + ".exe"
	}
	return program
}

// commandLine is the program of users.
const commandLine = "seamark"

func commandLinePlatforms() []platform {
	return append(imagePlatforms(), platform{"darwin", "amd64"}, platform{"darwin", "arm64"}, platform{"windows", "amd64"})
}

func imagePlatforms() []platform { return []platform{{"linux", "amd64"}, {"linux", "arm64"}} }

// toolchainOf returns the version of Go that a go.mod requires, such as go1.26.8. Another version compiles other
// programs.
func toolchainOf(goMod string) (string, error) {
	text, err := os.ReadFile(goMod)
	if err != nil {
		return "", fmt.Errorf("find the version of Go: %w", err)
	}
	parsed, err := modfile.ParseLax(goMod, text, nil)
	if err != nil {
		return "", fmt.Errorf("find the version of Go: %w", err)
	}
	if parsed.Go == nil {
		return "", fmt.Errorf("find the version of Go: %s has no line with go", goMod)
	}
	return "go" + parsed.Go.Version, nil
}

// programs builds all programs in the work folder.
func (r *run) programs(ctx context.Context) error {
	for _, p := range commandLinePlatforms() {
		packages := []string{"./cmd/" + commandLine}
		if p.os == "linux" {
			for _, c := range components() {
				packages = append(packages, "./cmd/"+c.program())
			}
		}
		args := append([]string{"build", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace",
			"-ldflags=-s -w -buildid= -X main.version=" + string(r.version), "-o", r.programFolder(p) + "/"}, packages...)
		if err := r.command(ctx, r.environment(p), "go", args...); err != nil {
			return fmt.Errorf("build the programs of %s: %w", p, err)
		}
	}
	return nil
}

func (r *run) programFolder(p platform) string { return filepath.Join(r.work, p.String()) }

// environment returns the environment of the compiler. It replaces all variables that change the code.
func (r *run) environment(p platform) []string {
	return append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=",
		"GOEXPERIMENT=", "GOWORK=off", "CGO_ENABLED=0", "GOTOOLCHAIN="+r.toolchain)
}

// run runs a command in the root of the repository. Its output is part of the error if it fails.
func (r *run) command(ctx context.Context, environment []string, program string, args ...string) error {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir, command.Env = r.Source, environment
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(append([]string{filepath.Base(program)}, args...), " "), err, bytes.TrimSpace(out))
	}
	return nil
}
