// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestSplit(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    []string
	}{
		"empty":          {"", nil},
		"comments only":  {"# nothing\n---\n# nothing\n", nil},
		"two documents":  {"a: 1\n---\nb: 2\n", []string{`1: {"a":1}`, `2: {"b":2}`}},
		"Windows lines":  {"a: 1\r\n---\r\nb: x\r\n", []string{`1: {"a":1}`, `2: {"b":"x"}`}},
		"JSON with tabs": {"{\n\t\"a\":\t1\n}\n", []string{`1: {"a":1}`}},
		"key twice":      {"# x\n---\na: 1\nb: 1\na: 2\n", []string{`1: invalid YAML: line 5: key "a" already set in map (line 5)`}},
		"invalid, then one": {
			"a: [\n---\nb: 2\n", []string{"1: invalid YAML: yaml: line 1: did not find expected node content (line 1)", `2: {"b":2}`},
		},
		"text after a separator": {
			"a: 1\n--- b: 2\n---\nc: [\n", []string{
				"1: invalid YAML: line 2: only a comment may follow --- in its line (line 2)",
				"2: invalid YAML: yaml: line 4: did not find expected node content (line 4)",
			},
		},
		"text at the end":           {"--- # x\na: 1\n--- b", []string{"1: invalid YAML: line 3: only a comment may follow --- in its line (line 3)"}},
		"YAML 1.1 boolean":          {"a: yes\n", []string{`1: {"a":true}`}},
		"merge key and an override": {"a: &p {x: 1, z: 2}\nb:\n  <<: *p\n  x: 3\n", []string{`1: {"a":{"x":1,"z":2},"b":{"x":3,"z":2}}`}},
		"merge keys with equal keys": {"a: &p {x: 1}\nb: &q {x: 2, z: 3}\nc: {<<: [*p, *q], z: 4}\n",
			[]string{`1: {"a":{"x":1},"b":{"x":2,"z":3},"c":{"x":1,"z":4}}`}},
		"merge key below": {"# x\n---\na: &p {x: 1}\nb:\n  x: 3\n  <<: *p\n",
			[]string{`1: invalid YAML: line 6: the merge key replaces "x", which is set above: move the merge key to the top (line 6)`}},
		"merge key, and a key twice": {"a: &p {x: 1}\nb: {<<: *p, x: 3, x: 4}\n", []string{`1: invalid YAML: line 2: key "x" already set in map (line 2)`}},
		"circle":                     {"a: &a\n  <<: *a\n  x: 1\n", []string{"1: invalid YAML: yaml: anchor 'a' value contains itself (line 1)"}},
		"Latin-1": {
			"a: 1\n---\nb: caf\xe9 au lait\n", []string{`1: {"a":1}`, "2: invalid text: line 3: the byte 0xe9 is not UTF-8: save the file as UTF-8 (line 3)"},
		},
		"control character": {
			"a: 1\nb: \a\n", []string{
				"1: invalid text: line 2: the control character U+0007 is not allowed: write it as an escape sequence in double quotes (line 2)",
			},
		},
		"broken JSON":              {"{\"a\": 1,\n \"b\" 2\n}\n", []string{"1: invalid JSON: line 2: invalid character '2' after object key (line 2)"}},
		"JSON that ends early":     {"{\n\"a\": [1\n", []string{"1: invalid JSON: line 3: unexpected end of JSON input (line 3)"}},
		"long line without an end": {"a: " + strings.Repeat("x", 4093), []string{`1: {"a":"` + strings.Repeat("x", 4093) + `"}`}},
		"many equal keys":          {strings.Repeat("a: 1\n", 100), []string{"1: invalid YAML: " + strings.TrimSuffix(equalKeys(20), "\n") + " (line 2)"}},
		"broken flow mapping":      {"{a: 1,\n b: [}\n", []string{"1: invalid YAML: yaml: line 1: did not find expected node content (line 1)"}},
	} {
		t.Run(name, func(t *testing.T) {
			documents := document.Split([]byte(test.content))
			var got []string
			for _, d := range documents {
				text := string(d.JSON)
				if d.Err != nil {
					text = fmt.Sprintf("%s (line %d)", d.Err, d.ErrorLine())
				}
				got = append(got, fmt.Sprintf("%d: %s", d.Number, text))
			}
			expect.Equal(t, "documents", test.want, got)
		})
	}
}

// equalKeys is the error about equal keys in the lines below the first one.
func equalKeys(lines int) string {
	var text strings.Builder
	for line := range lines {
		fmt.Fprintf(&text, "line %d: key \"a\" already set in map\n", line+2)
	}
	return text.String()
}

const manifest = `# A comment
kind: Other
---
# Another comment
kind: PodProbeMarker
metadata:
  labels: {game.io/idle: "true", game.io: x}
common: &common
  shared:
    deep: 1
spec:
  probes:
  - name: a
  - name: b
    probe: {exec: {command: [cat, /tmp/x]}}
  merged:
    <<: *common
    own: 1
  alias: *common
  circle: &circle
    <<: *circle
`

func TestPositions(t *testing.T) {
	documents := document.Split([]byte(manifest))
	if len(documents) != 2 {
		t.Fatalf("%d documents", len(documents))
	}
	positions := documents[1].Positions()
	for path, want := range map[string]string{
		"":                                      "5:1",
		"kind":                                  "5:1",
		"metadata.labels[game.io/idle]":         "7:12",
		"metadata.labels.game.io/idle":          "7:12",
		"metadata.labels[game.io]":              "7:34",
		"metadata.labels.missing":               "7:3",
		"spec.probes":                           "12:3",
		"spec.probes[0]":                        "13:5",
		"spec.probes[1].name":                   "14:5",
		"spec.probes[1].probe.exec.command[1]":  "15:35",
		"spec.probes[1].probe.exec.command[7]":  "15:20",
		"spec.probes[1].probe.httpGet.port":     "15:5",
		"spec.probes[-1]":                       "12:3",
		"spec.probes[x]":                        "12:3",
		"spec.merged.shared.deep":               "10:5",
		"spec.merged.own":                       "18:5",
		"spec.alias.shared":                     "9:3",
		"spec.circle.missing":                   "20:3",
		"spec.selector":                         "11:1",
		"status":                                "5:1",
		strings.Repeat("spec.probes[0].", 1000): "13:5",
	} {
		line, column := positions.Of(path)
		expect.Equal(t, fmt.Sprintf("position of %q", path), want, fmt.Sprintf("%d:%d", line, column))
	}
}

// Merge keys that repeat each other do not make a search long.
func TestMergesAreBounded(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 {x: 1}\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d {<<: [*a%d, *a%d, *a%d]}\n", i, i, i-1, i-1, i-1)
	}
	documents := document.Split([]byte("# x\n---\n" + bomb.String()))
	if len(documents) != 1 {
		t.Fatalf("%d documents", len(documents))
	}
	if line, _ := documents[0].Positions().Of("a39.missing"); line != 42 {
		t.Errorf("line %d, want 42", line)
	}
}

// FuzzDocument checks that each position is within the manifest.
func FuzzDocument(f *testing.F) {
	f.Add(manifest, "spec.probes[1].probe.exec")
	f.Add("{\n\t\"a\": [1]}", "a[0]")
	f.Add("a: *a\n---\n- - &x [*x]\n...\n--- b\n", "[0][0]")
	f.Fuzz(func(t *testing.T, content, path string) {
		documents := document.Split([]byte(content))
		lines := strings.Count(content, "\n") + strings.Count(content, "\r") + strings.Count(content, "\u0085") +
			strings.Count(content, "\u2028") + strings.Count(content, "\u2029") + 2
		for i, d := range documents {
			if (d.Err == nil) != (d.JSON != nil) || d.Number != i+1 {
				t.Errorf("document %d: number %d, error %v, JSON %q", i, d.Number, d.Err, d.JSON)
			}
			line, column := d.Positions().Of(path)
			if line < 1 || line > lines || column < 1 || d.ErrorLine() < 1 {
				t.Errorf("position %d:%d and error line %d of %d lines", line, column, d.ErrorLine(), lines)
			}
		}
	})
}
