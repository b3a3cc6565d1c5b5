// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printingtest checks in tests of commands what they print with package printing.
package printingtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/expect"
)

// CheckReport checks a report that contains texttest.Hostile: its text must be safe for a terminal, and its JSON and
// YAML must be exact.
func CheckReport(t *testing.T, report func(out io.Writer, format printing.Report) error) {
	t.Helper()
	var out, encoded bytes.Buffer
	expect.NoError(t, report(printing.Safe(&out), printing.Text))
	texttest.Check(t, out.String())
	for format, decode := range map[printing.Report]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(content []byte, into any) error { return yaml.Unmarshal(content, into) },
	} {
		encoded.Reset()
		expect.NoError(t, report(printing.Safe(&encoded), format))
		var value any
		if err := decode(encoded.Bytes(), &value); err != nil || !strings.Contains(fmt.Sprint(value), texttest.Hostile) {
			t.Errorf("%s is not exact, %v: %v", format, err, value)
		}
	}
}
