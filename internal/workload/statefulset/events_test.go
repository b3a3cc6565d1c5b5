// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPodsOfAStepHaveOneEvent(t *testing.T) {
	p := &planner{}
	for _, pod := range []string{"db-0", "db-1"} {
		p.event("SuccessfulCreate", pod, "Created pod %s of revision a.", "Created %d pods of revision a: %s.")
	}
	p.event("SuccessfulDelete", "db-3", "Deleted pod %s: Update.", "Deleted %d pods, Update: %s.")
	p.event("SuccessfulCreate", "db-2", "Created pod %s of revision b.", "Created %d pods of revision b: %s.")
	var messages []string
	for _, e := range p.report() {
		messages = append(messages, e.Reason+": "+e.Message)
	}
	want := []string{
		"SuccessfulCreate: Created 2 pods of revision a: db-0, db-1.",
		"SuccessfulDelete: Deleted pod db-3: Update.",
		"SuccessfulCreate: Created pod db-2 of revision b.",
	}
	if diff := cmp.Diff(want, messages); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if events := (&planner{}).report(); events != nil {
		t.Errorf("events %v of a step without pods, want none", events)
	}
}
