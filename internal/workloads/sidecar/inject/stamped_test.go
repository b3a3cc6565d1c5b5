// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// written returns texts that read must read without decoding them, as Seamark and OpenKruise write them.
func written() []string {
	const first = `"logs":{"updateTimestamp":"2026-01-02T03:04:05Z","hash":"a","sidecarSetName":"logs","sidecarList":["x","y"],"controllerRevision":"logs-1"}`
	return []string{
		"{" + first + "}",
		`{"a":{"updateTimestamp":"2026-01-02T03:04:05+02:00","hash":"","sidecarSetName":"","sidecarList":[]},` + first + "}",
		"{" + first + `,"mesh":{"updateTimestamp":"2026-01-02T03:04:05Z","hash":"c","sidecarSetName":"mesh","sidecarList":null}}`,
	}
}

// TestWrittenStampsAreRead checks that the fast way is used, and finds what the annotation says.
func TestWrittenStampsAreRead(t *testing.T) {
	for _, text := range written() {
		if got, ok := read(text, "logs"); !ok || got.Revision != "logs-1" || got.Hash != "a" || got.At.UTC().Format("15:04:05") != "03:04:05" {
			t.Errorf("%s: %+v, read %t", text, got, ok)
		}
	}
}

// FuzzStamped compares what is read with what is decoded.
func FuzzStamped(f *testing.F) {
	texts := append(written(), "", "{}", "null", "x", `{"logs":null}`, `{"logs":{}}`)
	for _, text := range texts {
		f.Add(text)
		for i := range len(text) {
			// Something is missing, or there twice.
			f.Add(text[:i] + text[i+1:])
			f.Add(text[:i] + text[i:i+1] + text[i:])
			f.Add(text[:i] + "\\" + text[i:])
			f.Add(text[:i] + "1" + text[i+1:])
		}
		f.Add(strings.Replace(text, `"hash":"a"`, `"hash":"a","hash":"b"`, 1))
		f.Add(strings.Replace(text, `"mesh"`, `"logs"`, 1))
		f.Add(strings.Replace(text, `"logs"`, `"Logs"`, 1))
		f.Add(strings.Replace(text, `"hash"`, `"Hash"`, 1))
		f.Add(text + " ")
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := read(text, "logs")
		if !ok {
			return
		}
		var all map[string]Stamped
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%s is read, but not decoded: %v", text, err)
		}
		if diff := cmp.Diff(all["logs"], got); diff != "" {
			t.Errorf("%s (-decoded +read):\n%s", text, diff)
		}
	})
}
