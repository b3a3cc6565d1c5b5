// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package programs_test runs the programs of the manager and the agent, with configuration
// files and flags, against a real API server and a container runtime whose containers are
// entries in a map. It checks their logs.
package programs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/process"
)

// shared is the API server of the package.
var shared *env.Env

func TestMain(m *testing.M) { env.Main(m, &shared) }

type program struct {
	t   *testing.T
	log string
	cmd *exec.Cmd
}

// start runs a program until the test ends, with the rights that config/rbac grants it.
// configuration is the content of its file without apiVersion and kind.
func start(t *testing.T, name, kind, configuration string, args ...string) *program {
	t.Helper()
	path, err := process.Built(name, "test-integration")
	expect.NoError(t, err)
	config := shared.Component(t, name)
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	content := fmt.Sprintf("apiVersion: config.seamark.dev/v1alpha1\nkind: %s\n%s", kind, configuration)
	expect.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	p := &program{t: t, log: filepath.Join(dir, "log")}
	log, err := os.Create(p.log)
	expect.NoError(t, err)
	args = append([]string{"--kubeconfig=" + env.Kubeconfig(t, config), "--config=" + file}, args...)
	p.cmd = exec.Command(path, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	expect.NoError(t, p.cmd.Start())
	_ = log.Close()
	t.Cleanup(p.stop)
	return p
}

// startManager runs a manager without leader election.
func startManager(t *testing.T, configuration string, args ...string) *program {
	t.Helper()
	return start(t, "seamark-manager", "ManagerConfiguration", configuration,
		append([]string{"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"}, args...)...)
}

// stop interrupts the program and waits for it.
func (p *program) stop() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(os.Interrupt)
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("run %s: %v", p.cmd.Path, err)
	}
	if p.t.Failed() {
		p.t.Logf("log of %s:\n%s", filepath.Base(p.cmd.Path), strings.Join(p.lines(), "\n"))
	}
}

func (p *program) lines() []string {
	content, err := os.ReadFile(p.log)
	expect.NoError(p.t, err)
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// logged returns the lines that match the expression.
func (p *program) logged(expression string) []string {
	matches := regexp.MustCompile(expression).MatchString
	var found []string
	for _, line := range p.lines() {
		if matches(line) {
			found = append(found, line)
		}
	}
	return found
}
