// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/workloads/cronjob"
)

// Jobs is the resource of what an AdvancedCronJob creates.
const Jobs permission.Resource = "jobs.batch"

// BroadcastJobs is the resource of the jobs with a pod per node.
const BroadcastJobs permission.Resource = "broadcastjobs." + v1alpha1.GroupName

// cronJob says what became of the last run, and why one that is due has not started. The next run is in the condition
// Scheduled.
func (w *workload) cronJob(object *v1alpha1.AdvancedCronJob) {
	resource := Jobs
	if object.Spec.Template.BroadcastJobTemplate != nil {
		resource = BroadcastJobs
	}
	if w.unread(resource, "Runs", "the jobs of the namespace") {
		return
	}
	w.lastRun(object)
	plan := func(policy v1alpha1.ConcurrencyPolicy) time.Time {
		edited := object.DeepCopy()
		edited.Spec.ConcurrencyPolicy = policy
		return cronjob.New(cronjob.Input{Object: edited, Jobs: w.given.Jobs, Broadcasts: true, Now: w.in.Now}).Create
	}
	due, allowed := plan(object.Spec.ConcurrencyPolicy), plan(v1alpha1.AllowConcurrent)
	switch {
	case !due.IsZero():
		w.late(
			due, "Due run", fmt.Sprintf(
				"the run of %s has not started", due.UTC().Format(time.RFC3339),
			), w.system("logs -l app.kubernetes.io/component=workloads --tail=50"),
		)
	case !allowed.IsZero():
		var names []string
		for _, job := range w.given.Jobs {
			if job.Ended == "" {
				names = append(names, job.GetName())
			}
		}
		w.add(Step{
			Title: "Due run", Verdict: Waiting, Text: fmt.Sprintf(
				"the run of %s waits, because spec.concurrencyPolicy is Forbid and an earlier one has not ended: %s",
				allowed.UTC().Format(time.RFC3339), list(names),
			),
			Next: w.describe(),
		})
	}
}

// lastRun says what became of the last slot.
func (w *workload) lastRun(object *v1alpha1.AdvancedCronJob) {
	const title = "Last run"
	last := object.Status.LastScheduleTime
	if last == nil {
		w.add(Step{Title: title, Verdict: Info, Text: "there was none"})
		return
	}
	name, at := cronjob.Name(object, last.Time), last.UTC().Format(time.RFC3339)
	i := slices.IndexFunc(w.given.Jobs, func(job cronjob.Job) bool { return job.GetName() == name })
	if i < 0 {
		text := fmt.Sprintf("the run of %s has no %s any more: it was deleted, or the run was dropped", at, object.Status.Type)
		w.add(Step{Title: title, Verdict: Info, Text: text, Evidence: w.events(cronjob.ReasonMissedDeadline, cronjob.ReasonMissedRuns)})
		return
	}
	switch job := w.given.Jobs[i]; job.Ended {
	case batchv1.JobComplete:
		w.add(Step{Title: title, Verdict: OK, Text: fmt.Sprintf("%s %s of %s succeeded", job.Kind, name, at)})
	case batchv1.JobFailed:
		w.problem(
			title, fmt.Sprintf("%s %s of %s failed", job.Kind, name, at), w.kubectl(
				"describe %s %s", strings.ToLower(job.GroupVersionKind.GroupKind().String()), name,
			),
		)
	default:
		w.add(Step{Title: title, Verdict: OK, Text: fmt.Sprintf("%s %s of %s runs", job.Kind, name, at)})
	}
}

// events returns the last events of the object with the reasons, the latest first.
func (w *workload) events(reasons ...string) []string {
	if missing, found := w.in.Unread[permission.Events]; found {
		return []string{"the events, which say why, cannot be read: " + missing.String()}
	}
	found := slices.DeleteFunc(slices.Clone(w.given.Events), func(event corev1.Event) bool {
		return event.InvolvedObject.Kind != w.given.Kind || !slices.Contains(reasons, event.Reason)
	})
	slices.SortFunc(found, func(a, b corev1.Event) int { return eventTime(b).Compare(eventTime(a)) })
	var lines []string
	for i := range found {
		lines = append(lines, fmt.Sprintf("%s, %s ago: %s", found[i].Reason, w.age(eventTime(found[i])), found[i].Message))
	}
	return bounded(lines)
}

// allowedNodes returns the nodes on which jobs may pull if seamark-workloads is not configured otherwise.
func allowedNodes() labels.Selector {
	var config configv1alpha1.WorkloadsConfiguration
	configv1alpha1.SetWorkloadsDefaults(&config)
	selector, err := metav1.LabelSelectorAsSelector(config.ImagePull.NodeSelector)
	if err != nil {
		return labels.Everything() // The default is valid.
	}
	return selector
}
