// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/web/page"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
	"github.com/seamark-dev/seamark/test/expect"
)

// read returns the contents of all files by path.
func read(t *testing.T) map[string]string {
	t.Helper()
	contents := map[string]string{}
	err := fs.WalkDir(page.Files(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(page.Files(), name)
		contents[name] = string(data)
		return err
	})
	expect.NoError(t, err)
	return contents
}

func TestFilesAreSmallAndHaveALicense(t *testing.T) {
	for name, text := range read(t) {
		if lines := strings.Count(text, "\n"); lines >= 400 {
			t.Errorf("%s has %d lines, want fewer than 400", name, lines)
		}
		if !strings.Contains(text, "Copyright The Seamark Authors.") || !strings.Contains(text, "SPDX-License-Identifier: Apache-2.0") {
			t.Errorf("%s has no license header", name)
		}
	}
}

// TestNothingBreaksTheContentSecurityPolicy finds what a strict policy blocks and what reads data as
// code. The tests in Chromium check the policy itself.
func TestNothingBreaksTheContentSecurityPolicy(t *testing.T) {
	forbidden := map[string]*regexp.Regexp{
		"reads text as HTML or code": regexp.MustCompile(
			`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(|createContextualFragment|DOMParser`,
		),
		"inline style":            regexp.MustCompile(`<style|\sstyle=|setAttribute\('style'|\bstyle: ['"` + "`]"),
		"inline script":           regexp.MustCompile(`<script>|\son[a-z]+="|javascript:`),
		"address of another host": regexp.MustCompile(`(href|src|url\(|fetch\(|import)[^\n]{0,12}(https?:)?//`),
		"path from the root":      regexp.MustCompile(`(href|src)="/|fetch\(['"` + "`]/|url\\([\"']?/"),
	}
	for name, text := range read(t) {
		for what, pattern := range forbidden {
			expect.Equal(t, fmt.Sprintf("%s: %s", name, what), "", pattern.FindString(text))
		}
	}
}

// TestReferencesExist checks that every reference between the files leads to a file, and every file
// is referred to.
func TestReferencesExist(t *testing.T) {
	contents := read(t)
	reference := regexp.MustCompile(`(?:href="|src="|from '|url\("|import ')(\.?/?[A-Za-z0-9_./-]+\.(?:js|css|svg))["']`)
	used := map[string]bool{"index.html": true}
	for name, text := range contents {
		for _, match := range reference.FindAllStringSubmatch(text, -1) {
			target := path.Join(path.Dir(name), match[1])
			used[target] = true
			if _, found := contents[target]; !found {
				t.Errorf("%s refers to %s, which does not exist", name, target)
			}
		}
	}
	expect.Equal(t, "files (-existing +used)", slices.Sorted(maps.Keys(contents)), slices.Sorted(maps.Keys(used)))
}

// TestLanguagesHaveTheSameTexts checks that no language lacks a text or a value in it, and that each text
// is used.
func TestLanguagesHaveTheSameTexts(t *testing.T) {
	contents := read(t)
	line := regexp.MustCompile(`(?m)^  (?:'([^']+)'|(\w+)): (.*),$`)
	placeholder := regexp.MustCompile(`\{\w+\}`)
	texts := func(name string) map[string][]string {
		found := map[string][]string{}
		for _, match := range line.FindAllStringSubmatch(contents[name], -1) {
			values := placeholder.FindAllString(match[3], -1)
			slices.Sort(values)
			found[match[1]+match[2]] = slices.Compact(values)
		}
		return found
	}
	english := texts("assets/en.js")
	if diff := cmp.Diff(english, texts("assets/zh.js")); diff != "" || len(english) == 0 {
		t.Errorf("texts and their values (-English +Chinese):\n%s", diff)
	}
	code := ""
	for name, text := range contents {
		if !strings.HasSuffix(name, "/en.js") && !strings.HasSuffix(name, "/zh.js") {
			code += text
		}
	}
	for k := range english {
		// Texts of a kind, such as state.Failed, are selected by their prefix.
		prefix, _, isKind := strings.Cut(k, ".")
		if !strings.Contains(code, `'`+k+`'`) && !strings.Contains(code, `"`+k+`"`) && (!isKind || !strings.Contains(code, "`"+prefix+".$")) &&
			!strings.Contains(code, "${"+k) {
			t.Errorf("no file uses the text %q", k)
		}
	}
}

// texts returns the reasons as text.
func texts[R ~string](reasons []R) []string {
	var all []string
	for _, reason := range reasons {
		all = append(all, string(reason))
	}
	return all
}

// TestReasonsAreTranslated checks that the Chinese page translates each reason that it can show, and no others.
func TestReasonsAreTranslated(t *testing.T) {
	want := slices.Concat([]string{"InvalidMarker", "NoPods"}, texts(v1alpha1.ProbeErrorReasons()), texts(diagnosis.Reasons()), texts(plan.Reasons()),
		texts(serverless.Reasons()), texts(rollout.Reasons()), slices.DeleteFunc(texts(accept.Reasons()), accept.Intended))
	var got []string
	for _, match := range regexp.MustCompile(`(?m)^  (\w+): '`).FindAllStringSubmatch(read(t)["assets/reasons.js"], -1) {
		got = append(got, match[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	expect.Equal(t, "reasons (-code +page)", slices.Compact(want), got)
}
