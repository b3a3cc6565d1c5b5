// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cronjobs_test tests AdvancedCronJobs with a real API server. The tests play the Job controller.
package cronjobs_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// server is the API server that the tests share.
var server *env.Env

func TestMain(m *testing.M) { env.Main(m, &server) }

// start runs seamark-workloads until the test ends or the function is called.
func start(t *testing.T, e *env.Env) (stop func()) {
	t.Helper()
	cfg := program.Install(t, e, "config/cronjobs/rbac.yaml", "config/cronjobs/policy.yaml")
	return program.Start(t, cfg, func(_ *workloads.Options, enabled *configv1alpha1.WorkloadControllers) {
		enabled.AdvancedCronJob.Enabled = new(true)
	})
}

// world is an AdvancedCronJob in its own namespace.
type world struct {
	*env.World
	object *v1alpha1.AdvancedCronJob
}

const template = `{"metadata": {"labels": {"app": "report"}}, "spec": {"backoffLimit": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "report:1"}]}}}}`

func newObject(namespace, schedule string) *v1alpha1.AdvancedCronJob {
	return &v1alpha1.AdvancedCronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "report"},
		Spec:       v1alpha1.AdvancedCronJobSpec{Schedule: schedule, Template: v1alpha1.CronJobTemplate{JobTemplate: &runtime.RawExtension{Raw: []byte(template)}}},
	}
}

// create creates an object that runs every second, and deletes it at the end of the test.
func create(t *testing.T, e *env.Env, change func(*v1alpha1.AdvancedCronJobSpec)) *world {
	t.Helper()
	w := &world{World: env.NewWorld(t, e)}
	w.object = newObject(w.Namespace, "@every 1s")
	if change != nil {
		change(&w.object.Spec)
	}
	w.CreateFor(w.object)
	return w
}

// edit changes the specification.
func (w *world) edit(change func(*v1alpha1.AdvancedCronJobSpec)) {
	w.Helper()
	w.Edit(w.object, func() { change(&w.object.Spec) })
}

// jobs returns the Jobs that exist, the oldest slot first.
func (w *world) jobs() []batchv1.Job {
	w.Helper()
	list := &batchv1.JobList{}
	w.List(list)
	slices.SortFunc(list.Items, func(a, b batchv1.Job) int { return slot(w, &a).Compare(slot(w, &b)) })
	return list.Items
}

// slot returns the slot of a Job.
func slot(t testing.TB, job *batchv1.Job) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, job.Annotations[v1alpha1.ScheduledAtKey])
	expect.NoError(t, err)
	return at
}

// complete ends a Job as the Job controller does, once.
func (w *world) complete(job *batchv1.Job) {
	w.Helper()
	if job.Status.CompletionTime != nil {
		return
	}
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now})
	}
	expect.NoError(w, client.IgnoreNotFound(w.Client.Status().Update(w.Context(), job)))
}

// until waits until the check of the object, which it reads, succeeds.
func (w *world) until(what string, check func() error) {
	w.Helper()
	w.Shows(w.object, what, check)
}

// has waits for a condition.
func (w *world) has(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	w.Helper()
	return w.Condition(w.object, &w.object.Status.Conditions, kind, status, reason)
}
