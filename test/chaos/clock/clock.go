// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clock steps the wall clock of one process that `make clock-programs` has built.
package clock

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"time"
)

// symbol is the variable of the process with the seconds that time.Now adds to the wall clock of the machine.
const symbol = "runtime.wallOffset"

// Set steps the wall clock of a process to so much after that of the machine, in whole seconds. Monotonic times, and
// with them timers, do not change, as if a daemon of NTP had stepped the clock.
func Set(pid int, after time.Duration) error {
	address, err := find(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return fmt.Errorf("step the clock of process %d: %w", pid, err)
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("step the clock of process %d: %w", pid, err)
	}
	defer func() { _ = memory.Close() }()
	seconds := binary.NativeEndian.AppendUint64(nil, uint64(int64(after/time.Second))) //nolint:gosec // The bits matter.
	if _, err := memory.WriteAt(seconds, address); err != nil {
		return fmt.Errorf("step the clock of process %d: %w", pid, err)
	}
	return nil
}

// find returns the address of the variable.
func find(program string) (int64, error) {
	file, err := elf.Open(program)
	if err != nil {
		return 0, fmt.Errorf("read the program: %w", err)
	}
	defer func() { _ = file.Close() }()
	symbols, err := file.Symbols()
	if err != nil {
		return 0, fmt.Errorf("read the symbols of the program: %w", err)
	}
	for i := range symbols {
		if symbols[i].Name == symbol {
			return int64(symbols[i].Value), nil //nolint:gosec // It is an address of a process.
		}
	}
	return 0, fmt.Errorf("the program has no %s: `make chaos` builds it with one, on amd64 only", symbol)
}
