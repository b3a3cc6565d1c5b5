// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/hack/release/internal/expect"
	"github.com/seamark-dev/seamark/hack/release/internal/version"
)

func TestSection(t *testing.T) {
	const both = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- New\n\n## [0.2.0] - 2026-01-02\n\n- Two\n\n## 0.1.0\n\n- One\n\n[Unreleased]: https://x\n"
	for name, test := range map[string]struct {
		changelog string
		version   version.Version
		want      string
		err       string
	}{
		"section":            {both, "v0.2.0", "- Two", ""},
		"heading without []": {both, "v0.1.0", "- One\n\n[Unreleased]: https://x", ""},
		"not yet named":      {both, "v0.3.0", "### Added\n\n- New", ""},
		"with the letter v":  {"## [v0.2.0]\n- Two\n", "v0.2.0", "- Two", ""},
		"links": {
			"## 1.0.0\n[a](docs/a.md#b) [b](https://b) [c](#c)\n", "v1.0.0",
			"[a](https://example.org/blob/v1.0.0/docs/a.md#b) [b](https://b) [c](#c)", "",
		},
		"empty section": {
			"## 1.0.0\n\n### Added\n\n## 0.9.0\n- Nine\n", "v1.0.0", "", "the section 1.0.0 of the changelog is empty: describe the changes of v1.0.0",
		},
		"empty unreleased": {
			"## [Unreleased]\n\n[a]: https://a\n", "v1.0.0", "", "the section Unreleased of the changelog is empty: describe the changes of v1.0.0",
		},
		"no section":            {"# Changelog\n\n## 0.9.0\n- Nine\n", "v1.0.0", "", "the changelog has neither a section 1.0.0 nor a section Unreleased"},
		"prefix of the version": {"## 1.0.0-rc.1\n- RC\n", "v1.0.0", "", "neither a section 1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Section(test.changelog, test.version, "https://example.org")
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want %s", err, test.err)
				}
				return
			}
			expect.NoError(t, err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
