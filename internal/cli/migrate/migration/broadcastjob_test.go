// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/golden"
)

// broadcastJob returns a BroadcastJob with the fields in its spec.
func broadcastJob(name, fields string) string {
	return "apiVersion: apps.kruise.io/v1alpha1\nkind: BroadcastJob\nmetadata: {namespace: game, name: " + name + "}\n" +
		"spec: {template: {spec: {restartPolicy: OnFailure, containers: [{name: main, image: main}]}}, " + fields + "}\n"
}

func TestBroadcastJobs(t *testing.T) {
	const all, failFast = "completionPolicy: {type: Always}", ", failurePolicy: {type: FailFast}, parallelism: "
	jobs := []string{
		broadcastJob("running", all+failFast+"2147483647"),
		broadcastJob("steps", all+failFast+"10%"),
		broadcastJob("one-by-one", all+failFast+"1"),
		broadcastJob("goes-on", "failurePolicy: {type: Continue}, parallelism: 5"),
		broadcastJob("ended", all+failFast+"5") + "status: {phase: completed, completionTime: '2026-11-27T12:00:00Z'}\n",
		strings.ReplaceAll(broadcastJob("restarts", all), "OnFailure", "Always"),
		strings.ReplaceAll(broadcastJob("excluded", all), "namespace: game", "namespace: kube-system"),
		strings.ReplaceAll(broadcastJob("version", all), "v1alpha1", "v1"),
	}
	found, err := migration.Check(t.Context(), migration.Cluster{Objects: byKind(objects(t, strings.Join(jobs, "---\n")))})
	expect.NoError(t, err)
	golden.Compare(t, filepath.Join("testdata", "BroadcastJobs.txt"), text(found))
}

// TestBroadcastJobsOfAdvancedCronJobs has the findings about the jobs, with the path of the template.
func TestBroadcastJobsOfAdvancedCronJobs(t *testing.T) {
	scheduled := func(name, fields string) string {
		return "apiVersion: apps.kruise.io/v1alpha1\nkind: AdvancedCronJob\nmetadata: {namespace: game, name: " + name + "}\n" +
			"spec: {schedule: '@hourly', timeZone: UTC, template: {broadcastJobTemplate: {spec: {" +
			"template: {spec: {restartPolicy: OnFailure, containers: [{name: main, image: main}]}}, " + fields + "}}}}\n"
	}
	const ends = "completionPolicy: {type: Always}"
	objectsOf := []string{
		scheduled("runs", ends),
		scheduled("steps", ends+", parallelism: 10%, failurePolicy: {type: FailFast}"),
		strings.ReplaceAll(scheduled("restarts", ends), "OnFailure", "Always"),
		strings.ReplaceAll(scheduled("excluded", ends), "namespace: game", "namespace: kube-system"),
		scheduled("wrong", "completionPolicy: {type: Sometimes}"),
	}
	found, err := migration.Check(t.Context(), migration.Cluster{Objects: byKind(objects(t, strings.Join(objectsOf, "---\n")))})
	expect.NoError(t, err)
	golden.Compare(t, filepath.Join("testdata", "BroadcastJobsOfAdvancedCronJobs.txt"), text(found))
}
