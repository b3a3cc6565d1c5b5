// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process starts daemons that outlive this program, and ends them.
//
// A daemon leads a session of its own, writes to a log file, and lives in a cgroup of its own. It is
// known by a record that stays true when process numbers are used again.
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

// Spec says how to start a daemon.
type Spec struct {
	// Name names its log, its record and its cgroup.
	Name string `json:"name"`
	// Path and Args are the program and its arguments, without the program's name.
	Path string   `json:"path"`
	Args []string `json:"args"`
	// Env is its whole environment.
	Env []string `json:"env"`
	// NetNS is the path of its network namespace; empty for the machine's own.
	NetNS string `json:"netns,omitempty"`
	// Inputs are the files that it reads at its start: a change of one makes the running process out of
	// date.
	Inputs []string `json:"inputs,omitempty"`
}

// Digest stands for the spec, the program and the content of the inputs.
func (s Spec) Digest() (string, error) {
	hash := sha256.New()
	if err := json.NewEncoder(hash).Encode(s); err != nil {
		return "", fmt.Errorf("digest %s: %w", s.Name, err)
	}
	// The program is large and replaced by renaming, so its size and time stand for its content.
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

// Manager starts and ends the daemons of one cluster.
type Manager struct {
	runDir, logDir string
	launcher       []string

	mutex   sync.Mutex
	ensured map[string]bool
}

// NewManager keeps records in runDir and logs in logDir. The launcher is the command that, given a
// Spec as JSON in one more argument, calls Launch.
func NewManager(runDir, logDir string, launcher []string) (*Manager, error) {
	for _, dir := range []string{runDir, logDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("create a directory: %w", err)
		}
	}
	return &Manager{runDir: runDir, logDir: logDir, launcher: launcher, ensured: map[string]bool{}}, nil
}

// Ensure leaves a running process that is up to date with spec, and says whether it had to start it.
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

// Ended names a daemon that Ensure left running and that has ended since; empty if there is none.
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
	// Reaped here, so that a daemon that ends at once is seen as ended.
	go func() { _ = cmd.Wait() }()
	record := Record{Name: spec.Name, PID: cmd.Process.Pid, Start: start, Boot: boot, Digest: digest}
	return record.write(m.runDir)
}

// maxLog is the size in bytes from which a log is put aside when its daemon starts again.
const maxLog = 16 << 20

// openLog appends to a log; one that has grown large goes to `<name>.old`, in place of what was there.
func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

// stopGrace is how long a daemon may take to end by itself.
const stopGrace = 5 * time.Second

// Stop ends the named daemon, gently first, and forgets it. A daemon that does not run is no error.
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

// Records are the records of all daemons, by name.
func (m *Manager) Records() (map[string]Record, error) { return ReadRecords(m.runDir) }
