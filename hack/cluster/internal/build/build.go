// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build makes the programs of a cluster from their Go modules.
//
// What is built is pinned by go.mod and go.sum: a stamp beside each program tells from what it was made,
// and a program whose stamp still holds is left alone.
package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

// Program is one program to make.
type Program struct {
	// Name is the name of the file.
	Name string
	// Module is the folder of the module that pins it, relative to this program's own.
	Module string
	// Package is its import path.
	Package string
	// Tags are build tags, separated by blanks.
	Tags string
	// Version is the module whose version the program reports, and VersionVars the variables that hold it.
	Version     string
	VersionVars []string
	// Sources are files of this module that the program is made of and no version pins.
	Sources []string
}

// Programs lists all programs, those first that others wait for.
func Programs() []Program {
	kubernetes := func(name string) Program {
		return Program{
			Name: name, Module: ".", Package: "k8s.io/kubernetes/cmd/" + name, Version: "k8s.io/kubernetes",
			VersionVars: []string{
				"k8s.io/component-base/version.gitVersion",
				"k8s.io/client-go/pkg/version.gitVersion",
			},
		}
	}
	containerd := func(name string) Program {
		const module = "github.com/containerd/containerd/v2"
		return Program{
			Name: name, Module: "containerd", Package: module + "/cmd/" + name, Version: module,
			Tags:        "no_btrfs no_devmapper no_zfs",
			VersionVars: []string{module + "/version.Version"},
		}
	}
	return []Program{
		{Name: "etcd", Module: ".", Package: "go.etcd.io/etcd/server/v3"},
		kubernetes("kube-apiserver"),
		containerd("containerd"), containerd("containerd-shim-runc-v2"), containerd("ctr"),
		{Name: "pause", Module: ".", Package: "./cmd/pause", Sources: []string{"cmd/pause/main.go"}},
		kubernetes("kubelet"), kubernetes("kube-controller-manager"), kubernetes("kube-scheduler"),
		kubernetes("kube-proxy"), kubernetes("kubectl"),
	}
}

// Select keeps the programs with the given names; no names keep all.
func Select(programs []Program, names []string) ([]Program, error) {
	if len(names) == 0 {
		return programs, nil
	}
	var selected []Program
	for _, name := range names {
		found := slices.IndexFunc(programs, func(p Program) bool { return p.Name == name })
		if found < 0 {
			var known []string
			for _, program := range programs {
				known = append(known, program.Name)
			}
			return nil, fmt.Errorf("no program %q; there are %s", name, strings.Join(known, ", "))
		}
		selected = append(selected, programs[found])
	}
	return selected, nil
}

// flags are the flags of `go build`. Programs carry no paths of the machine and no build ID, so that the
// same code makes the same bytes.
func (p Program) flags(goMod []byte) ([]string, error) {
	linker := "-s -w -buildid="
	if p.Version != "" {
		version, err := moduleVersion(goMod, p.Version)
		if err != nil {
			return nil, err
		}
		for _, variable := range p.VersionVars {
			linker += " -X " + variable + "=" + version
			if name, ok := strings.CutSuffix(variable, ".gitVersion"); ok {
				linker += minorVersion(name, version)
			}
		}
	}
	return []string{"-trimpath", "-tags=" + p.Tags, "-ldflags=" + linker}, nil
}

// minorVersion sets the separate numbers that Kubernetes programs also report.
func minorVersion(variables, version string) string {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 2 {
		return ""
	}
	return fmt.Sprintf(" -X %[1]s.gitMajor=%[2]s -X %[1]s.gitMinor=%[3]s -X %[1]s.gitTreeState=archive",
		variables, parts[0], parts[1])
}

func moduleVersion(goMod []byte, module string) (string, error) {
	parsed, err := modfile.ParseLax("go.mod", goMod, nil)
	if err != nil {
		return "", fmt.Errorf("read go.mod: %w", err)
	}
	for _, require := range parsed.Require {
		if require.Mod.Path == module {
			return require.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("go.mod does not require %s", module)
}

// Builder builds programs into one folder.
type Builder struct {
	// Source is the folder of this program's module.
	Source string
	// Out is the folder of the programs.
	Out string
	// Log collects what the compiler says.
	Log string
	// Progress is told what is being built.
	Progress io.Writer
}

// Ensure builds those programs that are missing or out of date.
func (b *Builder) Ensure(ctx context.Context, programs []Program) error {
	if err := os.MkdirAll(b.Out, 0o755); err != nil {
		return fmt.Errorf("create the program folder: %w", err)
	}
	for _, program := range programs {
		if err := b.ensure(ctx, program); err != nil {
			return err
		}
	}
	return nil
}

func (b *Builder) ensure(ctx context.Context, program Program) error {
	goMod, err := os.ReadFile(filepath.Join(b.Source, program.Module, "go.mod"))
	if err != nil {
		return fmt.Errorf("read the versions of %s: %w", program.Name, err)
	}
	flags, err := program.flags(goMod)
	if err != nil {
		return fmt.Errorf("build %s: %w", program.Name, err)
	}
	stamp, err := b.stamp(program, goMod, flags)
	if err != nil {
		return err
	}
	path := filepath.Join(b.Out, program.Name)
	stampPath := filepath.Join(b.Out, "."+program.Name+".stamp")
	if current(path, stampPath, stamp) {
		return nil
	}
	// `go build` leaves the file alone when it fails, but not when it is killed.
	building := filepath.Join(b.Out, "."+program.Name+".new")
	args := append([]string{"build"}, flags...)
	if err := b.run(ctx, program, append(args, "-o", building, program.Package)); err != nil {
		return err
	}
	if err := replace(building, path); err != nil {
		return fmt.Errorf("put %s in place: %w", program.Name, err)
	}
	if err := os.WriteFile(stampPath, []byte(stamp), 0o644); err != nil {
		return fmt.Errorf("stamp %s: %w", program.Name, err)
	}
	return nil
}

// replace moves a program into place, unless the very same is there: what runs it can go on.
func replace(building, path string) error {
	made, err := os.ReadFile(building)
	if err != nil {
		return err
	}
	if found, err := os.ReadFile(path); err == nil && bytes.Equal(found, made) {
		return os.Remove(building)
	}
	return os.Rename(building, path)
}

func current(path, stampPath, stamp string) bool {
	if _, err := os.Stat(path); err != nil {
		return false
	}
	found, err := os.ReadFile(stampPath)
	return err == nil && string(found) == stamp
}

// stamp stands for all that a program is made from.
func (b *Builder) stamp(program Program, goMod []byte, flags []string) (string, error) {
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, runtime.Version(), runtime.GOARCH, program.Package, flags)
	versions, err := pinned(goMod)
	if err != nil {
		return "", fmt.Errorf("stamp %s: %w", program.Name, err)
	}
	_, _ = fmt.Fprintln(hash, versions)
	for _, name := range program.Sources {
		text, err := os.ReadFile(filepath.Join(b.Source, name))
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("build %s: no %s in %s: run this in the folder of its module", program.Name, name, b.Source)
		}
		if err != nil {
			return "", fmt.Errorf("stamp %s: %w", program.Name, err)
		}
		_, _ = fmt.Fprintln(hash, name, len(text))
		_, _ = hash.Write(text)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// pinned is the part of go.mod that decides what a program is made of: versions and replacements. The
// list of tools does not.
func pinned(goMod []byte) (string, error) {
	parsed, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return "", fmt.Errorf("read go.mod: %w", err)
	}
	var lines []string
	for _, require := range parsed.Require {
		lines = append(lines, require.Mod.String())
	}
	for _, replace := range parsed.Replace {
		lines = append(lines, replace.Old.String()+" => "+replace.New.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// progressEvery is how often a long build shows that it goes on.
const progressEvery = 5 * time.Second

func (b *Builder) run(ctx context.Context, program Program, args []string) error {
	log, err := os.OpenFile(b.Log, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("open the build log: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(b.Source, program.Module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = log, log
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build %s: %w", program.Name, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.say("building %s: %d s", program.Name, int(time.Since(start).Seconds()))
		case err := <-done:
			if err != nil {
				return fmt.Errorf("build %s: %w\n%s", program.Name, err, tail(b.Log))
			}
			b.say("built %s in %.1f s", program.Name, time.Since(start).Seconds())
			return nil
		}
	}
}

func (b *Builder) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.Progress, format+"\n", args...)
}

// tail is the end of a log: enough to see why a build failed.
func tail(path string) string {
	const most = 4096
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text[max(0, len(text)-most):])
}
