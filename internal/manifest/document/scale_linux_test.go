// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/test/expect"
)

// shapes are manifests of about a size in bytes, each with many of one thing.
func shapes(size int) map[string]string {
	repeat := func(head, unit, tail string) string { return head + strings.Repeat(unit, size/len(unit)) + tail }
	numbered := func(head, unit string) string {
		var b strings.Builder
		b.WriteString(head)
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, unit, i)
		}
		return b.String()
	}
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	deep := strings.Repeat("{a: ", 500) + strings.Repeat("}", 500) + "\n---\n"
	return map[string]string{
		"documents":             numbered("", "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c%d\n"),
		"Windows lines":         numbered("", "---\r\napiVersion: v1\r\nkind: ConfigMap\r\nmetadata:\r\n  name: c%d\r\n"),
		"items of a list":       numbered("kind: List\nitems:\n", "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: c%d\n"),
		"keys":                  numbered(object+"data:\n", "  key%d: value\n"),
		"anchors":               numbered(object+"data:\n", "  key%[1]d: &a%[1]d value\n  other%[1]d: *a%[1]d\n"),
		"merge keys":            numbered(object+"base: &b {a: 1, b: 2}\ndata:\n", "  key%d: {<<: *b, a: 1}\n"),
		"equal keys":            repeat("", "a: 1\n", ""),
		"one line":              repeat(object+"data: {a: \"", "x", "\"}\n"),
		"items of one line":     repeat("[", "a,", "a]"),
		"lines of a text":       repeat("a: |\n", "  some text\n", ""),
		"JSON with tabs":        repeat("{\"a\":[\n", "\t1,\n", "\t1]}"),
		"nesting":               repeat("", deep, ""),
		"separators":            repeat("", "---\n", ""),
		"texts in separators":   repeat("", "--- x\n", ""),
		"invalid documents":     repeat("", "a: [\n---\n", ""),
		"error at the end":      repeat("", "- a: 1\n", "- [\n"),
		"character not allowed": repeat("a: |\n", "  text\n", "\x00"),
	}
}

// Reading takes time in proportion to the size: quadratic work takes 16 times as long for one manifest as for 16 of a 16th of its size.
// The time is that of the processor, and both take about the same, so that other programs matter little.
func TestReadingIsLinear(t *testing.T) {
	const size, factor, limit = 16 << 10, 16, 5
	small, large := shapes(size), shapes(factor*size)
	for name, content := range small {
		var before int64
		for range factor {
			before += cost(t, content)
		}
		after := cost(t, large[name])
		if ratio := float64(after) / float64(before); ratio > limit {
			t.Errorf("%s: %d times the size takes %.0f times as long per byte (%d ns)", name, factor, ratio, after)
		}
	}
}

// cost returns the time of the processor for reading a manifest, with the positions of some fields.
func cost(t *testing.T, content string) int64 {
	t.Helper()
	text, start := []byte(content), processor(t)
	documents := document.Split(text)
	for _, d := range documents {
		positions := d.Positions()
		// The number of findings is in proportion to the size, too.
		for i := range len(text) / 64 / len(documents) {
			if line, _ := positions.Of(fmt.Sprintf("data.key%d", i)); line < 1 || d.ErrorLine() < 1 {
				t.Fatal("no line")
			}
		}
	}
	return processor(t) - start
}

func processor(t *testing.T) int64 {
	t.Helper()
	var usage unix.Rusage
	expect.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}
