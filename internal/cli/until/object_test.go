// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package until_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/internal/cli/until"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestParseObjectRefuses(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"empty":              {"", "must be one of condition=TYPE[=STATUS], jsonpath={PATH}[=VALUE], create, delete"},
		"a pod":              {"pod/a condition=Ready", "must be one of"},
		"a label":            {"label=a", "must be one of"},
		"no condition":       {"condition", "must be one of condition="},
		"unknown status":     {"condition=Ready=yes", `status "yes" must be one of True, False, Unknown`},
		"delete of a field":  {"delete=x", "delete must not have a value"},
		"no path":            {"jsonpath=", "must be {PATH} or {PATH}=VALUE"},
		"no value":           {"jsonpath={.a}=", "must be {PATH} or {PATH}=VALUE"},
		"two paths":          {"jsonpath={.a}{.b}=1", "must be {PATH} or {PATH}=VALUE"},
		"a path that is bad": {"jsonpath={.a[}=1", "unterminated array"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := until.ParseObject(test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("ParseObject(%q): %v, want an error with %q", test.text, err, test.want)
			}
		})
	}
}

func TestResultOfAnObject(t *testing.T) {
	const updating = `
metadata: {generation: 2, finalizers: [a.io/b]}
status:
  observedGeneration: 2
  updatedReplicas: 2
  updateRevision: arena-1
  labels: {}
  conditions: [{type: Ready, status: "False", reason: Updating, message: 2 of 3 pods are updated}, {type: FailedScale, status: "True"}]
`
	const waits = "metadata: {deletionTimestamp: \"2026-01-02T03:04:05Z\", "
	for name, test := range map[string]struct {
		text string
		// old and new are a change of the object. If old is empty, new is the object, which does not exist if it is "none".
		old, new string
		// want is what the object has instead, empty if the expression is met.
		want, stalled string
	}{
		"a condition":             {text: "condition=FailedScale"},
		"a status of a condition": {text: "condition=Ready=False"},
		"another case":            {text: "condition=ready=false"},
		"the notation of pods":    {text: "condition=Ready:False"},
		"another status":          {text: "condition=Ready", want: "False: Updating: 2 of 3 pods are updated"},
		"another condition":       {text: "condition=Complete", want: "no such condition; there are Ready=False, FailedScale=True"},
		"no conditions":           {text: "condition=Ready", new: "metadata: {generation: 1}\nstatus: {observedGeneration: 1}", want: "no conditions"},
		"a field":                 {text: "jsonpath={.status.updateRevision}"},
		"a number":                {text: "jsonpath={.status.updatedReplicas}=2"},
		"a quoted value":          {text: `jsonpath={.status.updateRevision}="arena-1"`},
		"a path without braces":   {text: "jsonpath=.status.updatedReplicas=2"},
		"a filter":                {text: `jsonpath={.status.conditions[?(@.type=="Ready")].status}=False`},
		"another value":           {text: "jsonpath={.status.updatedReplicas}=3", want: `"2"`},
		"no such field":           {text: "jsonpath={.status.readyReplicas}=3", want: "no such field"},
		"an object":               {text: "jsonpath={.status.labels}=x", want: "an object or a list"},
		"several fields":          {text: "jsonpath={.status.conditions[*].type}=Ready", want: "2 fields"},
		"it exists":               {text: "create"},
		"it does not exist":       {text: "create", new: "none", want: "it does not exist"},
		"it is not deleted":       {text: "delete", want: "it exists"},
		"it is held":              {text: "delete", old: "metadata: {", new: waits, want: "it exists, and waits for its finalizers: a.io/b"},
		"it is deleted":           {text: "delete", new: "none"},
		"a condition of nothing":  {text: "condition=Ready", new: "none", want: "it does not exist"},
		"an old condition": {
			text: "condition=FailedScale", old: "{generation: 2", new: "{generation: 3", want: "generation 3 is not processed yet (observed 2)",
		},
		"an old field": {
			text: "jsonpath={.status.updatedReplicas}=2", old: "{generation: 2", new: "{generation: 3", want: "generation 3 is not processed yet (observed 2)",
		},
		"no status": {text: "condition=Ready", new: "metadata: {generation: 1}", want: "generation 1 is not processed yet"},
		"a job of OpenKruise": {
			text: "jsonpath={.status.phase}=completed", new: "kind: BroadcastJob\nmetadata: {generation: 1}\nstatus: {phase: completed}",
		},
		"a new job": {
			text: "condition=Complete", new: "kind: BroadcastJob\nmetadata: {generation: 1}", want: "generation 1 is not processed yet",
		},
		"a job after a change": {
			text: "jsonpath={.status.phase}=completed", want: "generation 2 is not processed yet (observed 1)",
			new: "kind: BroadcastJob\nmetadata: {generation: 2}\nstatus: {observedGeneration: 1, phase: completed}",
		},
		"it is stalled": {
			text: "condition=Ready", old: "type: FailedScale", new: "type: Stalled, message: it has timed out",
			want: "False: Updating: 2 of 3 pods are updated", stalled: "it has timed out",
		},
		"a wait for Stalled": {text: "condition=Stalled", old: "FailedScale", new: "Stalled"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := until.ParseObject(test.text)
			expect.NoError(t, err)
			content := test.new
			if test.old != "" || test.new == "" {
				content = strings.Replace(updating, test.old, test.new, 1)
			}
			var object *unstructured.Unstructured
			if content != "none" {
				object = &unstructured.Unstructured{}
				if !strings.HasPrefix(content, "kind:") {
					content = "kind: CloneSet\n" + content
				}
				data, err := yaml.YAMLToJSON([]byte("apiVersion: apps.kruise.io/v1alpha1\n" + content))
				expect.NoError(t, err)
				expect.NoError(t, object.UnmarshalJSON(data))
			}
			result, stalled := e.Result(object)
			expect.Equal(t, "result", until.Result{Expression: test.text, Met: test.want == "", Last: test.want}, result)
			expect.Equal(t, "stalled", test.stalled, stalled)
		})
	}
}
