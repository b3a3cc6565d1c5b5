// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/lint/rules"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestSARIF(t *testing.T) {
	all := rules.All()
	findings := []rules.Finding{
		{Severity: rules.Error, Rule: all[0].Name, File: "./a b/marker.yaml", Line: 3, Column: 5, Message: "not <valid>"},
		{Severity: rules.Info, Rule: all[2].Name, File: "/tmp/kustomization.yaml", Object: "PodProbeMarker worker", Field: "spec", Message: "x", Fix: "y"},
	}
	var out bytes.Buffer
	expect.NoError(t, rules.WriteSARIF(&out, "v1.2.3", findings[:1], findings[1:]))
	var got map[string]any
	expect.NoError(t, json.Unmarshal(out.Bytes(), &got))
	run, _ := got["runs"].([]any)[0].(map[string]any)
	driver, _ := run["tool"].(map[string]any)["driver"].(map[string]any)
	listed, _ := driver["rules"].([]any)
	if len(listed) != len(all) {
		t.Fatalf("%d rules, want %d", len(listed), len(all))
	}
	for i, each := range listed {
		want := map[string]any{
			"id": all[i].Name, "shortDescription": map[string]any{"text": all[i].Summary},
			"defaultConfiguration": map[string]any{
				"level": map[rules.Severity]string{rules.Error: "error", rules.Warning: "warning", rules.Info: "note"}[all[i].Severity],
			},
		}
		expect.Equal(t, fmt.Sprintf("rule %d", i), any(want), each)
	}
	delete(driver, "rules")
	want := map[string]any{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []any{map[string]any{
			"columnKind": "unicodeCodePoints",
			"tool": map[string]any{"driver": map[string]any{
				"name": "seamark lint", "version": "v1.2.3", "informationUri": "https://github.com/seamark-dev/seamark",
			}},
			"results": []any{
				map[string]any{
					"ruleId": all[0].Name, "ruleIndex": 0.0, "level": "error", "message": map[string]any{"text": "not <valid>"},
					"locations": []any{map[string]any{"physicalLocation": map[string]any{
						"artifactLocation": map[string]any{"uri": "a%20b/marker.yaml"},
						"region":           map[string]any{"startLine": 3.0, "startColumn": 5.0},
					}}},
					"suppressions": []any{},
				},
				map[string]any{
					"ruleId": all[2].Name, "ruleIndex": 2.0, "level": "note", "message": map[string]any{"text": "spec: x. Fix: y"},
					"locations": []any{map[string]any{
						"physicalLocation": map[string]any{"artifactLocation": map[string]any{"uri": "file:///tmp/kustomization.yaml"}},
						"logicalLocations": []any{map[string]any{"fullyQualifiedName": "PodProbeMarker worker spec"}},
					}},
					"suppressions": []any{map[string]any{"kind": "external", "justification": "--ignore " + all[2].Name}},
				},
			},
		}},
	}
	expect.Equal(t, "log", want, got)
}

// A log without findings has an empty list of results: without the list, it would mean that nothing
// was checked. If no rule is ignored, the results do not say whether they are suppressed.
func TestSARIFWithoutFindings(t *testing.T) {
	for want, findings := range map[string][]rules.Finding{
		`"results": []`: nil, `"ruleId": "schema"`: {{Severity: rules.Error, Rule: "schema", File: "a.yaml"}},
	} {
		var out bytes.Buffer
		expect.NoError(t, rules.WriteSARIF(&out, "", findings, nil))
		if log := out.String(); !strings.Contains(log, want) || strings.Contains(log, "suppressions") {
			t.Errorf("log %s, want %s and no suppressions", log, want)
		}
	}
}
