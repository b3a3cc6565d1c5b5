// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/lint"
)

func TestCheckRule(t *testing.T) {
	for _, name := range lint.RuleNames() {
		if err := lint.CheckRule(name); err != nil {
			t.Errorf("rule %s: %v", name, err)
		}
	}
	for name, end := range map[string]string{
		"exec-no-pth":   `invalid-predownload or delete-protection; did you mean "exec-no-path"?`,
		"Schema":        `invalid-predownload or delete-protection; did you mean "schema"?`,
		"something":     "invalid-predownload or delete-protection",
		"":              "invalid-predownload or delete-protection",
		"schema,schema": "invalid-predownload or delete-protection",
	} {
		err := lint.CheckRule(name)
		if err == nil || !strings.HasPrefix(err.Error(), `"`+name+`" is invalid: must be invalid-yaml, `) || !strings.HasSuffix(err.Error(), end) {
			t.Errorf("error for rule %q: %v, want one that ends with %s", name, err, end)
		}
	}
}
