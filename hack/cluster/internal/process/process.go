// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process starts and stops daemons, which keep running when this program ends.
//
// A daemon has its own session, log file and cgroup. A record identifies it, even if the kernel reuses its process
// ID.
package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Spec describes a daemon.
type Spec struct {
	// Name is the name of the daemon, its log, its record and its cgroup.
	Name string `json:"name"`
	// Path and Args are the program and its arguments, without the name of the program.
	Path string   `json:"path"`
	Args []string `json:"args"`
	// Env is the complete environment.
	Env []string `json:"env"`
	// NetNS is the path of the network namespace, or empty for that of the machine.
	NetNS string `json:"netns,omitempty"`
	// Inputs are the files that the daemon reads at its start. If one changes, the running process is out of
	// date.
	Inputs []string `json:"inputs,omitempty"`
}

// Digest returns a hash of the spec, the program and the content of the inputs.
func (s Spec) Digest() (string, error) {
	hash := sha256.New()
	if err := json.NewEncoder(hash).Encode(s); err != nil {
		return "", fmt.Errorf("digest %s: %w", s.Name, err)
	}
	// The program is large and is replaced by renaming: its size and time identify its content.
	info, err := os.Stat(s.Path)
	if err != nil {
		return "", fmt.Errorf("digest %s: %w", s.Name, err)
	}
	_, _ = fmt.Fprintln(hash, info.Size(), info.ModTime().UnixNano())
	for _, input := range s.Inputs {
		text, err := os.ReadFile(input)
		if err != nil {
			return "", fmt.Errorf("digest %s: %w", s.Name, err)
		}
		_, _ = fmt.Fprintln(hash, input, len(text))
		_, _ = hash.Write(text)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Manager starts and stops the daemons of one cluster.
type Manager struct {
	runDir, logDir string
	launcher       []string

	mutex   sync.Mutex
	ensured map[string]bool
}

// NewManager returns a manager with records in runDir and logs in logDir. launcher is a command that calls Launch
// with a Spec as JSON, which is appended as an argument.
func NewManager(runDir, logDir string, launcher []string) (*Manager, error) {
	for _, dir := range []string{runDir, logDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("create folder: %w", err)
		}
	}
	return &Manager{runDir: runDir, logDir: logDir, launcher: launcher, ensured: map[string]bool{}}, nil
}

// Ensure starts the daemon unless a process that is up to date with spec is running. It reports whether it started
// one.
func (m *Manager) Ensure(ctx context.Context, spec Spec) (started bool, err error) {
	digest, err := spec.Digest()
	if err != nil {
		return false, err
	}
	records, err := ReadRecords(m.runDir)
	if err != nil {
		return false, err
	}
	if record, ok := records[spec.Name]; ok && record.Alive() {
		if record.Digest == digest {
			m.note(spec.Name, true)
			return false, nil
		}
		if err := m.Stop(ctx, spec.Name); err != nil {
			return false, err
		}
	}
	if err := m.start(spec, digest); err != nil {
		return false, err
	}
	m.note(spec.Name, true)
	return true, nil
}

func (m *Manager) note(name string, ensured bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if ensured {
		m.ensured[name] = true
	} else {
		delete(m.ensured, name)
	}
}

// Ended returns the name of a daemon that has ended after Ensure, or an empty string.
func (m *Manager) Ended() (string, error) {
	records, err := ReadRecords(m.runDir)
	if err != nil {
		return "", err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for name := range m.ensured {
		if record, ok := records[name]; !ok || !record.Alive() {
			return name, nil
		}
	}
	return "", nil
}

func (m *Manager) start(spec Spec, digest string) error {
	boot, err := BootID()
	if err != nil {
		return err
	}
	log, err := openLog(filepath.Join(m.logDir, spec.Name+".log"))
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }()
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode the command of %s: %w", spec.Name, err)
	}
	cmd := exec.Command(m.launcher[0], append(append([]string{}, m.launcher[1:]...), string(text))...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", spec.Name, err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	if err != nil {
		return fmt.Errorf("start %s: %w", spec.Name, err)
	}
	_, start, err := parseStat(string(stat))
	if err != nil {
		return fmt.Errorf("start %s: %w", spec.Name, err)
	}
	// Without a wait, a daemon that ends at once would remain as a zombie.
	go func() { _ = cmd.Wait() }()
	record := Record{Name: spec.Name, PID: cmd.Process.Pid, Start: start, Boot: boot, Digest: digest}
	return record.write(m.runDir)
}

// maxLog is the size in bytes at which a log is rotated when its daemon starts.
const maxLog = 16 << 20

// openLog opens a log to append to it. A large log is first renamed to `<name>.old`.
func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

// stopGrace is the time that a daemon has to end before it is killed.
const stopGrace = 5 * time.Second

// Stop stops the named daemon, with SIGTERM first, and removes its record. If it is not running, Stop does nothing.
func (m *Manager) Stop(ctx context.Context, name string) error {
	records, err := ReadRecords(m.runDir)
	if err != nil {
		return err
	}
	record, ok := records[name]
	if !ok {
		return nil
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if !record.Alive() {
			break
		}
		if err := syscall.Kill(record.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop %s: %w", name, err)
		}
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, stopGrace, true,
			func(context.Context) (bool, error) { return !record.Alive(), nil })
		if err != nil && (signal == syscall.SIGKILL || ctx.Err() != nil) {
			return fmt.Errorf("stop %s: %w", name, err)
		}
	}
	return m.Forget(name)
}

// Forget removes the record of a daemon.
func (m *Manager) Forget(name string) error {
	m.note(name, false)
	if err := os.Remove(recordPath(m.runDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget %s: %w", name, err)
	}
	return nil
}

// Records returns the records of all daemons, by name.
func (m *Manager) Records() (map[string]Record, error) { return ReadRecords(m.runDir) }
