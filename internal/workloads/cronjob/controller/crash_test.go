// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/cronjob/controller"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/test/crash"
	"github.com/seamark-dev/seamark/test/expect"
)

// world is an object that is due every minute, and its Jobs.
type world struct {
	*crash.World
	object        *v1alpha1.AdvancedCronJob
	objects, jobs reconciler.Store
	controller    *controller.Controller
}

func newWorld(t *testing.T, seed uint64, history int32, policy v1alpha1.ConcurrencyPolicy) *world {
	t.Helper()
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	w := &world{object: &v1alpha1.AdvancedCronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "report", UID: "uid", Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
		Spec: v1alpha1.AdvancedCronJobSpec{
			Schedule: "* * * * *", SuccessfulJobsHistoryLimit: &history, ConcurrencyPolicy: policy,
			Template: v1alpha1.CronJobTemplate{JobTemplate: &runtime.RawExtension{Raw: []byte(`{"spec": {"template": {}}}`)}},
		},
	}}
	w.World = crash.New(t, seed, noon, w.object)
	w.objects, w.jobs = w.Store(&v1alpha1.AdvancedCronJobList{}), w.Store(&batchv1.JobList{})
	w.restart()
	return w
}

// restart starts another process.
func (w *world) restart() {
	w.Helper()
	options, live := w.Options(reconciler.Stores{Sets: w.objects})
	w.controller = controller.New(controller.Options{Options: options, Jobs: w.jobs, Live: live})
}

// job returns a random Job, or nil.
func (w *world) job() *batchv1.Job {
	w.Helper()
	jobs := crash.List[*batchv1.Job](w.World, &batchv1.JobList{})
	if len(jobs) == 0 {
		return nil
	}
	return jobs[w.Random.IntN(len(jobs))]
}

// complete ends a random Job.
func (w *world) complete() {
	w.Helper()
	job := w.job()
	if job == nil {
		return
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	job.Status.CompletionTime = new(metav1.NewTime(w.Now.Truncate(time.Second)))
	expect.NoError(w, w.API.Status().Update(w.Context(), job))
}

// TestNoSlotStartsTwice loses writes and answers, and delays the cache. In half of the seeds, it ends the process between
// any two reconciles; in the others, somebody else deletes Jobs, and no answer to a creation is lost: nobody could know
// that the scheduled time was started. Each scheduled time starts once at most, although finished Jobs are deleted at once, and the object goes
// on.
func TestNoSlotStartsTwice(t *testing.T) {
	for seed := range uint64(30) {
		policy := []v1alpha1.ConcurrencyPolicy{v1alpha1.AllowConcurrent, v1alpha1.ForbidConcurrent, v1alpha1.ReplaceConcurrent}[seed%3]
		w, deletes := newWorld(t, seed, int32(seed%2), policy), seed%4 > 1
		if random := w.Fate; deletes {
			w.Fate = func(verb string) crash.Fate {
				if fate := random(verb); verb != "create" || fate == crash.Lost {
					return fate
				}
				return crash.Done
			}
		}
		for range 200 {
			switch w.Random.IntN(8) {
			case 0:
				if job := w.job(); !deletes {
					w.restart()
				} else if job != nil {
					_ = w.API.Delete(t.Context(), job)
				}
			case 1, 2:
				w.complete()
			case 3:
				w.Now = w.Now.Add(time.Duration(w.Random.IntN(70)) * time.Second)
			case 4, 5:
				w.Fill()
			default:
				w.Reconcile(w.controller, w.object)
			}
		}
		for name, times := range w.Created {
			if times > 1 {
				t.Fatalf("seed %d: Job %s was created %d times", seed, name, times)
			}
		}
		if len(w.Created) < 5 {
			t.Fatalf("seed %d: only %d scheduled times were started", seed, len(w.Created))
		}
	}
}

// TestRunsGoOnWhileTheHistoryCannotBeDeleted refuses all deletions.
func TestRunsGoOnWhileTheHistoryCannotBeDeleted(t *testing.T) {
	w := newWorld(t, 1, 0, "")
	random := w.Fate
	w.Fate = func(verb string) crash.Fate {
		if verb == "delete" {
			return crash.Lost
		}
		return random(verb)
	}
	for range 20 {
		w.Now = w.Now.Add(time.Minute)
		// Writes fail at random: each scheduled time has several reconciles.
		for range 10 {
			w.Fill()
			w.Reconcile(w.controller, w.object)
			w.complete()
		}
	}
	expect.Equal(t, "scheduled times that were started", 20, len(w.Created))
}
