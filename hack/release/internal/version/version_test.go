// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/hack/release/internal/expect"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		valid bool
	}{
		"release":        {"v0.2.0", true},
		"prerelease":     {"v1.2.3-rc.1", true},
		"empty":          {"", false},
		"no v":           {"0.2.0", false},
		"two numbers":    {"v0.2", false},
		"leading zero":   {"v0.02.0", false},
		"build metadata": {"v0.2.0+build", false},
		"hash":           {"a57ffb90", false},
		"dirty":          {"v0.2.0 ", false},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := Parse(test.text)
			if test.valid != (err == nil) {
				t.Fatalf("error %v, want valid %v", err, test.valid)
			}
			if err == nil && (string(parsed) != test.text || "v"+parsed.Number() != test.text) {
				t.Errorf("version %s, number %s", parsed, parsed.Number())
			}
			if err != nil && !strings.HasPrefix(err.Error(), `version: "`+test.text+`" is invalid: must be `) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// repository creates a repository with one commit and returns a function that runs git in it.
func repository(t *testing.T) (string, func(args ...string) string) {
	t.Helper()
	folder := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Dir = folder
		command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_COMMITTER_DATE=2026-01-02T03:04:05+01:00",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "-q")
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "file"), nil, 0o600))
	run("add", ".")
	run("commit", "-qm", "first")
	return folder, run
}

func TestHead(t *testing.T) {
	folder, git := repository(t)
	commit, err := Head(t.Context(), folder, "v0.2.0")
	expect.NoError(t, err)
	want := Commit{Hash: git("rev-parse", "HEAD"), Time: time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC)}
	if commit != want {
		t.Errorf("commit %v, want %v", commit, want)
	}
	for _, tag := range [][]string{{"tag", "v0.3.0"}, {"tag", "-am", "annotated", "v0.4.0"}} {
		git(tag...)
		if _, err := Head(t.Context(), folder, Version(tag[len(tag)-1])); err != nil {
			t.Errorf("git %v: %v", tag, err)
		}
	}
	git("commit", "-q", "--allow-empty", "-m", "second")
	for _, tagged := range []Version{"v0.3.0", "v0.4.0"} {
		if _, err := Head(t.Context(), folder, tagged); err == nil || !strings.Contains(err.Error(), "is the tag of commit "+want.Hash) {
			t.Errorf("%s: error %v", tagged, err)
		}
	}
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "other"), nil, 0o600))
	if _, err := Head(t.Context(), folder, "v0.2.0"); err == nil || !strings.Contains(err.Error(), "?? other") {
		t.Errorf("error %v, want one that names the file", err)
	}
	if _, err := Head(t.Context(), t.TempDir(), "v0.2.0"); err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("error %v", err)
	}
}
