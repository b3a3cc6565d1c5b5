// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/lint/rules"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestCheckName(t *testing.T) {
	for _, name := range rules.Names() {
		if err := rules.CheckName(name); err != nil {
			t.Errorf("rule %s: %v", name, err)
		}
	}
	for name, end := range map[string]string{
		"exec-no-pth":   `guard-printed-label or too-many-guards; did you mean "exec-no-path"?`,
		"Schema":        `guard-printed-label or too-many-guards; did you mean "schema"?`,
		"something":     "guard-printed-label or too-many-guards",
		"":              "guard-printed-label or too-many-guards",
		"schema,schema": "guard-printed-label or too-many-guards",
	} {
		err := rules.CheckName(name)
		if err == nil || !strings.HasPrefix(err.Error(), `"`+name+`" is invalid: must be invalid-yaml, `) || !strings.HasSuffix(err.Error(), end) {
			t.Errorf("error for rule %q: %v, want one that ends with %s", name, err, end)
		}
	}
}

// The table of docs/write-markers.md has all rules.
func TestRulesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/write-markers.md")
	expect.NoError(t, err)
	const header = "| rule | severity | finding |\n| --- | --- | --- |\n"
	_, table, found := strings.Cut(string(page), header)
	if !found {
		t.Fatalf("docs/write-markers.md has no table %q", header)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var want strings.Builder
	for _, rule := range rules.All() {
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", rule.Name, rule.Severity, rule.Summary)
	}
	expect.Equal(t, "table of rules", want.String(), table+"\n")
}
