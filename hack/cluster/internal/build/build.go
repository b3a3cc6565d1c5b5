// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build builds the programs of a cluster from their Go modules.
//
// go.mod and go.sum pin the sources. A stamp next to each program records what it was built from, and a
// program with a valid stamp is not built again.
package build

import (
	"bytes"
	"cmp"
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

// Program describes a program to build.
type Program struct {
	// Name is the name of the file.
	Name string
	// Module is the folder of the module that pins the program, absolute or relative to this program's module.
	Module string
	// Package is the import path.
	Package string
	// Output is the name of the file that go build writes. It is Name if empty.
	Output string
	// Tags are build tags, separated by spaces.
	Tags string
	// Version is the module whose version the program reports, and VersionVars the variables that hold it.
	Version     string
	VersionVars []string
	// Sources are files of this module that the program is built from and no version pins.
	Sources []string
}

// Own is the folder of this program's module, which pins the default version of Kubernetes.
const Own = "."

// Programs returns the programs that every cluster needs. Those of Kubernetes, and etcd, are pinned by the module
// in the given folder.
func Programs(kubernetesModule string) []Program {
	kubernetes := func(name string) Program {
		return Program{
			Name: name, Module: kubernetesModule, Package: kubernetesPath + "/cmd/" + name, Version: kubernetesPath,
			VersionVars: []string{
				"k8s.io/component-base/version.gitVersion",
				"k8s.io/client-go/pkg/version.gitVersion",
			},
		}
	}
	programs := []Program{
		{Name: "etcd", Module: kubernetesModule, Package: etcdPackage, Output: "server"},
		kubernetes("kube-apiserver"),
	}
	programs = append(programs, containerd("containerd", "github.com/containerd/containerd/v2")...)
	return append(programs, []Program{
		{Name: "pause", Module: Own, Package: "./cmd/pause", Sources: []string{"cmd/pause/main.go"}},
		kubernetes("kubelet"), kubernetes("kube-controller-manager"), kubernetes("kube-scheduler"),
		kubernetes("kube-proxy"), kubernetes("kubectl"),
	}...)
}

// Containerd17 returns the programs of containerd 1.7, which have the names of those of containerd 2.
func Containerd17() []Program {
	return containerd("containerd-1.7", "github.com/containerd/containerd")
}

// containerd returns the programs of a version of containerd. folder is the folder of the module that pins it.
func containerd(folder, module string) []Program {
	var programs []Program
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		programs = append(programs, Program{
			Name: name, Module: folder, Package: module + "/cmd/" + name, Version: module,
			Tags:        "no_btrfs no_devmapper no_zfs",
			VersionVars: []string{module + "/version.Version"},
		})
	}
	return programs
}

// Select returns the programs with the given names, or all without names.
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
			return nil, fmt.Errorf("program %q is unknown: must be one of %s", name, strings.Join(known, ", "))
		}
		selected = append(selected, programs[found])
	}
	return selected, nil
}

// linkerFlags returns the flags of the linker. Programs contain no build ID, so that the same code gives the
// same bytes.
func (p Program) linkerFlags(goMod []byte) (string, error) {
	flags := "-s -w -buildid="
	if p.Version == "" {
		return flags, nil
	}
	version, err := moduleVersion(goMod, p.Version)
	if err != nil {
		return "", err
	}
	for _, variable := range p.VersionVars {
		flags += " -X " + variable + "=" + version
		if name, ok := strings.CutSuffix(variable, ".gitVersion"); ok {
			flags += minorVersion(name, version)
		}
	}
	return flags, nil
}

// minorVersion returns the flags that set the separate numbers that Kubernetes programs also report.
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
	// Log is the file for the output of the compiler.
	Log string
	// Progress receives messages about the progress.
	Progress io.Writer
}

// outdated is a program to build.
type outdated struct {
	Program
	linkerFlags string
	stamp       string
}

// Ensure builds the programs that are missing or out of date. Programs of one module are built by one go
// command: the packages that they share are compiled once, on all cores.
func (b *Builder) Ensure(ctx context.Context, programs []Program) error {
	if err := os.MkdirAll(b.Out, 0o755); err != nil {
		return fmt.Errorf("create the program folder: %w", err)
	}
	var modules []string
	groups := map[string][]outdated{}
	for _, program := range programs {
		job, err := b.check(program)
		if err != nil {
			return err
		}
		if job == nil {
			continue
		}
		if groups[program.Module] == nil {
			modules = append(modules, program.Module)
		}
		groups[program.Module] = append(groups[program.Module], *job)
	}
	for _, module := range modules {
		if err := b.build(ctx, module, groups[module]); err != nil {
			return err
		}
	}
	return nil
}

// check returns what to build, or nil if the program is up to date.
func (b *Builder) check(program Program) (*outdated, error) {
	goMod, err := os.ReadFile(filepath.Join(b.folder(program.Module), "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read the versions of %s: %w", program.Name, err)
	}
	flags, err := program.linkerFlags(goMod)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", program.Name, err)
	}
	stamp, err := b.stamp(program, goMod, flags)
	if err != nil || current(filepath.Join(b.Out, program.Name), b.stampPath(program), stamp) {
		return nil, err
	}
	return &outdated{Program: program, linkerFlags: flags, stamp: stamp}, nil
}

func (b *Builder) folder(module string) string {
	if filepath.IsAbs(module) {
		return module
	}
	return filepath.Join(b.Source, module)
}

func (b *Builder) stampPath(program Program) string {
	return filepath.Join(b.Out, "."+program.Name+".stamp")
}

// build builds programs of one module, which have the same tags.
func (b *Builder) build(ctx context.Context, module string, programs []outdated) error {
	// A go command that is killed leaves incomplete files.
	scratch := filepath.Join(b.Out, ".new")
	if err := errors.Join(os.RemoveAll(scratch), os.Mkdir(scratch, 0o755)); err != nil {
		return fmt.Errorf("create the build folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	args := []string{"build", "-v", "-trimpath", "-tags=" + programs[0].Tags}
	var names, packages []string
	for _, program := range programs {
		args = append(args, "-ldflags="+program.Package+"="+program.linkerFlags)
		names, packages = append(names, program.Name), append(packages, program.Package)
	}
	args = append(append(args, "-o", scratch+string(filepath.Separator)), packages...)
	if err := b.run(ctx, strings.Join(names, ", "), module, args); err != nil {
		return err
	}
	for _, program := range programs {
		built := filepath.Join(scratch, cmp.Or(program.Output, program.Name))
		if err := replace(built, filepath.Join(b.Out, program.Name)); err != nil {
			return fmt.Errorf("install %s: %w", program.Name, err)
		}
		if err := os.WriteFile(b.stampPath(program.Program), []byte(program.stamp), 0o644); err != nil {
			return fmt.Errorf("stamp %s: %w", program.Name, err)
		}
	}
	return nil
}

// replace moves a program to its path, unless the same bytes are there: daemons that run it need no restart.
func replace(building, path string) error {
	content, err := os.ReadFile(building)
	if err != nil {
		return err
	}
	if found, err := os.ReadFile(path); err == nil && bytes.Equal(found, content) {
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

// stamp returns a hash of everything that a program is built from.
func (b *Builder) stamp(program Program, goMod []byte, flags string) (string, error) {
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, runtime.Version(), runtime.GOARCH, program.Package, program.Tags, flags)
	versions, err := pinned(goMod)
	if err != nil {
		return "", fmt.Errorf("stamp %s: %w", program.Name, err)
	}
	_, _ = fmt.Fprintln(hash, versions)
	for _, name := range program.Sources {
		text, err := os.ReadFile(filepath.Join(b.Source, name))
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("build %s: no %s in %s: run this program in the folder of its module", program.Name, name, b.Source)
		}
		if err != nil {
			return "", fmt.Errorf("stamp %s: %w", program.Name, err)
		}
		_, _ = fmt.Fprintln(hash, name, len(text))
		_, _ = hash.Write(text)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// ownModules is the prefix of this repository's modules. No program is built from their code.
const ownModules = "github.com/seamark-dev/seamark/"

// pinned returns the part of go.mod that determines the code of a program: versions and replacements, but
// not the list of tools and not this repository's modules.
func pinned(goMod []byte) (string, error) {
	parsed, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return "", fmt.Errorf("read go.mod: %w", err)
	}
	var lines []string
	for _, require := range parsed.Require {
		if strings.HasPrefix(require.Mod.Path, ownModules) {
			continue
		}
		lines = append(lines, require.Mod.String())
	}
	for _, replace := range parsed.Replace {
		if strings.HasPrefix(replace.Old.Path, ownModules) {
			continue
		}
		lines = append(lines, replace.Old.String()+" => "+replace.New.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// progressPeriod is the time between two messages during a build.
const progressPeriod = 5 * time.Second

// run runs a go command in the folder of a module.
func (b *Builder) run(ctx context.Context, names, module string, args []string) error {
	log, err := os.OpenFile(b.Log, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("open the build log: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.folder(module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = log, log
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build %s: %w", names, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ticker := time.NewTicker(progressPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.say("building %s: %d s %s", names, int(time.Since(start).Seconds()), lastLine(b.Log))
		case err := <-done:
			if err != nil {
				return fmt.Errorf("build %s: %w\n%s", names, err, Tail(b.Log))
			}
			b.say("built %s in %.1f s", names, time.Since(start).Seconds())
			return nil
		}
	}
}

func (b *Builder) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.Progress, format+"\n", args...)
}

// Tail returns the end of a log, which contains the cause of a failure.
func Tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return tail(string(text))
}

func tail(text string) string { return text[max(0, len(text)-4096):] }

// lastLine returns the last line of a log: the package that was compiled or downloaded last.
func lastLine(path string) string {
	lines := strings.Split(strings.TrimSpace(Tail(path)), "\n")
	return lines[len(lines)-1]
}
