// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunable saves and restores the kernel settings that the kubelet changes for the whole machine.
package tunable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Names returns the paths of the settings below /proc/sys. The kubelet's container manager changes them.
func Names() []string {
	return []string{
		"kernel/keys/root_maxbytes", "kernel/keys/root_maxkeys", "kernel/panic", "kernel/panic_on_oops",
		"vm/overcommit_memory", "vm/panic_on_oom",
	}
}

// Save writes the current settings of root (/proc/sys) to file, unless the file exists.
func Save(root, file string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	values := map[string]string{}
	for _, name := range Names() {
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read kernel setting: %w", err)
		}
		values[name] = strings.TrimSpace(string(text))
	}
	text, err := json.MarshalIndent(values, "", "  ")
	if err != nil {
		return fmt.Errorf("encode kernel settings: %w", err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("save kernel settings: %w", err)
	}
	return nil
}

// Restore restores the settings that Save wrote to file and returns the names of those that had changed. If the
// file does not exist, it does nothing.
func Restore(root, file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read saved kernel settings: %w", err)
	}
	values := map[string]string{}
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("read saved kernel settings: %w", err)
	}
	var changed []string
	for _, name := range Names() {
		kept, ok := values[name]
		path := filepath.Join(root, name)
		now, err := os.ReadFile(path)
		if !ok || err != nil || strings.TrimSpace(string(now)) == kept {
			continue
		}
		if err := os.WriteFile(path, []byte(kept), 0o644); err != nil {
			return nil, fmt.Errorf("restore kernel setting: %w", err)
		}
		changed = append(changed, name)
	}
	return changed, nil
}
