// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

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
