// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/seamark-dev/seamark/test/await"
)

// Buffer has the output of a running program. It is for concurrent use.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p) //nolint:wrapcheck // it never fails
}

// Raw returns the output.
func (b *Buffer) Raw() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// String returns the output without escape sequences.
func (b *Buffer) String() string { return ansi.Strip(b.Raw()) }

// Await waits until the output without escape sequences contains the text.
func (b *Buffer) Await(tb testing.TB, text string) {
	tb.Helper()
	await.Until(tb, text, func(context.Context) (string, error) {
		if out := b.String(); !strings.Contains(out, text) {
			return "output: " + out, nil
		}
		return "", nil
	})
}
