// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/schedule"
)

// checkAdvancedCronJobs returns the findings about AdvancedCronJobs. A schema cannot check all schedules.
func checkAdvancedCronJobs(ctx context.Context, c Cluster, objects []*unstructured.Unstructured) ([]Finding, error) {
	found, err := checkWorkloads(ctx, objects, nil)
	refused := sets.New[string]()
	for _, f := range found {
		if f.Field == "spec.schedule" || f.Field == "spec.timeZone" {
			refused.Insert(f.Object())
		}
	}
	for _, object := range objects {
		if object.GetNamespace() == excludedNamespace {
			found = append(found, findingOf(Blocks, object, "metadata.namespace", "creates the Jobs", "may not create Jobs in "+excludedNamespace+" by default",
				"install Seamark with workloads.excludedNamespaces without "+excludedNamespace))
		}
		if !refused.Has((Finding{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}).Object()) {
			found = append(found, checkSchedule(object, c.Now)...)
		}
	}
	templates, failure := checkBroadcastJobTemplates(ctx, objects)
	return append(found, templates...), errors.Join(err, failure)
}

// checkBroadcastJobTemplates returns the findings about the BroadcastJobs that AdvancedCronJobs create.
func checkBroadcastJobTemplates(ctx context.Context, objects []*unstructured.Unstructured) ([]Finding, error) {
	var jobs []*unstructured.Unstructured
	for _, object := range objects {
		template, found, err := unstructured.NestedMap(object.Object, "spec", "template", "broadcastJobTemplate")
		if err != nil || !found {
			continue // The schema refuses another type.
		}
		job := &unstructured.Unstructured{Object: map[string]any{"spec": template["spec"]}}
		job.SetAPIVersion(v1alpha1.GroupVersion().String())
		job.SetKind("BroadcastJob")
		job.SetNamespace(object.GetNamespace())
		job.SetName(object.GetName())
		jobs = append(jobs, job)
	}
	found, err := checkBroadcastJobs(ctx, Cluster{}, jobs)
	found = slices.DeleteFunc(found, func(f Finding) bool { return f.Field == "metadata.namespace" }) // That of the AdvancedCronJob.
	for i := range found {
		found[i].Kind, found[i].Field = "AdvancedCronJob", "spec.template.broadcastJobTemplate."+found[i].Field
	}
	return found, err
}

// checkSchedule returns the findings about a schedule that the schema accepts.
func checkSchedule(object *unstructured.Unstructured, now time.Time) []Finding {
	text, _, _ := unstructured.NestedString(object.Object, "spec", "schedule")
	zone, _, _ := unstructured.NestedString(object.Object, "spec", "timeZone")
	parsed, err := schedule.Parse(text, zone)
	switch {
	case err != nil:
		return []Finding{findingOf(Blocks, object, "spec.schedule", "creates no Job", "creates no Job: "+oneLine(err.Error()), "correct the field")}
	case zone == "" && !strings.Contains(text, "TZ=") && !strings.HasPrefix(strings.TrimSpace(text), "@every "):
		return []Finding{findingOf(Changes, object, "spec.timeZone", "runs in the time zone of the container of its manager",
			"runs in "+schedule.DefaultZone, "set the time zone of the container, unless it is UTC")}
	}
	if change, differs := parsed.Differs(now, now.AddDate(1, 0, 0)); differs {
		return []Finding{findingOf(Changes, object, "spec.schedule", "skips or repeats a run when the clocks change, next on "+change.Format(time.DateOnly),
			"runs exactly once", "check that each run may take place")}
	}
	return nil
}
