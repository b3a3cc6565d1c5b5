// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"slices"
	"sync"
)

// MaxOutputBytes is how much of each stream of a command is kept.
const MaxOutputBytes = 10 << 10

// Output keeps the beginning of a stream of a command. It is safe for concurrent use: a stream may
// still be written to while the command is given up. The zero Output is empty.
type Output struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

// Write never fails, so that a command can write more than is kept.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if room := MaxOutputBytes - o.kept.Len(); room > 0 {
		o.kept.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// Bytes returns a copy of what is kept.
func (o *Output) Bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.kept.Bytes())
}
