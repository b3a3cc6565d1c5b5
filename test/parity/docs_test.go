// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestDocumentedTestsExist checks that each difference in docs/judging.md refers to an existing
// test.
func TestDocumentedTestsExist(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "judging.md"))
	expect.NoError(t, err)
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.Count(line, "|") != 5 || strings.Contains(line, "---") || strings.HasPrefix(line, "| the kubelet | ") {
			continue
		}
		rows++
		named := regexp.MustCompile("`(Test\\w+)`(?: in `([\\w/]+)`)?").FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("difference without a test: %s", line)
		}
		for _, name := range named {
			folder := filepath.Join(root, "test", "parity")
			if name[2] != "" {
				folder = filepath.Join(root, name[2])
			}
			if !declares(t, folder, name[1]) {
				t.Errorf("%s has no %s", folder, name[1])
			}
		}
	}
	if rows < 20 {
		t.Errorf("found %d differences, want at least 20", rows)
	}
}

func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatalf("list the tests of %s: %v", folder, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		expect.NoError(t, err)
		if strings.Contains(string(text), "func "+name+"(") {
			return true
		}
	}
	return false
}

// TestMain lets many tests wait for their timeouts in parallel, even with few cores.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, "set the number of parallel tests:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
