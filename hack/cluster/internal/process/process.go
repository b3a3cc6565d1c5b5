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
	"strconv"
	"strings"
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

// Record identifies a started process. The kernel reuses process IDs: Start and Boot distinguish the process
// from others with the same PID.
type Record struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Start is the start time in clock ticks after boot, field 22 of /proc/<pid>/stat.
	Start uint64 `json:"start"`
	// Boot is the ID of the boot at the start.
	Boot string `json:"boot"`
	// Digest is the digest of the spec. A process with another digest is out of date.
	Digest string `json:"digest"`
}

// ReadRecords returns the records of a folder by name. It returns none if the folder does not exist, and ignores
// files that it cannot decode.
func ReadRecords(dir string) (map[string]Record, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.pid.json"))
	if err != nil {
		return nil, fmt.Errorf("list process records: %w", err)
	}
	records := make(map[string]Record, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read process record: %w", err)
		}
		var record Record
		if json.Unmarshal(text, &record) == nil && record.Name != "" {
			records[record.Name] = record
		}
	}
	return records, nil
}

func recordPath(dir, name string) string { return filepath.Join(dir, name+".pid.json") }

func (r Record) write(dir string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the record of %s: %w", r.Name, err)
	}
	path := recordPath(dir, r.Name)
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return fmt.Errorf("write the record of %s: %w", r.Name, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write the record of %s: %w", r.Name, err)
	}
	return nil
}

// Alive reports whether the process of the record is running.
func (r Record) Alive() bool {
	boot, err := BootID()
	if err != nil || boot != r.Boot {
		return false
	}
	// While a thread other than the first executes a program, the first thread is a zombie until the other one
	// replaces it, and files of the process that were opened before are those of a process that no longer
	// exists. The process has not ended: it is found when it is looked up again.
	for range lookups {
		if r.found() {
			return true
		}
	}
	return false
}

// lookups is how often a process is looked up before it counts as ended.
const lookups = 3

// found reports whether the process exists and is no zombie, or has threads that are none.
func (r Record) found() bool {
	state, ok := r.state()
	if !ok || state != zombie {
		return ok
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", r.PID))
	return err == nil && len(tasks) > 1
}

// zombie is the state of a process that has ended and that its parent has not reaped.
const zombie = "Z"

// state returns the state of the recorded process, or false if it no longer exists.
func (r Record) state() (string, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.PID))
	if err != nil {
		return "", false
	}
	state, start, err := parseStat(string(text))
	return state, err == nil && start == r.Start && state != "X"
}

// BootID returns the ID of this boot.
func BootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot ID: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// parseStat parses the state and the start time from the text of /proc/<pid>/stat. The command in field 2 may
// contain spaces and parentheses: fields are counted after the last parenthesis.
func parseStat(text string) (state string, start uint64, err error) {
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return "", 0, errors.New("parse process state: no command field")
	}
	const stateField, startField = 3, 22
	fields := strings.Fields(text[end+1:])
	if len(fields) <= startField-stateField {
		return "", 0, errors.New("parse process state: too few fields")
	}
	start, err = strconv.ParseUint(fields[startField-stateField], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("parse process state: %w", err)
	}
	return fields[0], start, nil
}
