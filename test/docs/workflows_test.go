// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestActionsArePinned checks that workflows use actions by the digest of a commit, with the version in a comment.
func TestActionsArePinned(t *testing.T) {
	uses := regexp.MustCompile(`(?m)^\s*(?:- )?uses: *(.*)$`)
	pinned := regexp.MustCompile(`^(\./.*|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	var found int
	for _, pattern := range []string{".github/workflows/*", ".github/actions/*/*"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		must(t, err)
		for _, file := range files {
			content, err := os.ReadFile(file)
			must(t, err)
			for _, match := range uses.FindAllStringSubmatch(string(content), -1) {
				found++
				if !pinned.MatchString(match[1]) {
					t.Errorf("%s uses %s, which is not pinned", file, match[1])
				}
			}
		}
	}
	if found == 0 {
		t.Fatal("no workflow uses an action")
	}
}

// TestEveryModuleIsUpdated checks that dependabot.yml lists the folder of each module.
func TestEveryModuleIsUpdated(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, ".github/dependabot.yml"))
	must(t, err)
	var config struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	must(t, yaml.Unmarshal(content, &config))
	got := map[string]bool{}
	for _, update := range config.Updates {
		for _, directory := range update.Directories {
			got[directory] = got[directory] || update.Ecosystem == "gomod"
		}
	}
	list := exec.CommandContext(t.Context(), "git", "ls-files", "go.mod", "*/go.mod")
	list.Dir = root
	output, err := list.Output()
	must(t, err)
	want := map[string]bool{"/.github/actions/go": false}
	for _, file := range strings.Fields(string(output)) {
		want[path.Join("/", path.Dir(file))] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folders, -modules +dependabot.yml:\n%s", diff)
	}
}
