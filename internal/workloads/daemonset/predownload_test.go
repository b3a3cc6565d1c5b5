// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/daemonset"
)

// preDownloading returns the condition PreDownloading.
func preDownloading(out *daemonset.Output) (found appsv1.DaemonSetCondition) {
	for _, c := range out.Status.Conditions {
		if c.Type == "PreDownloading" {
			found = c
		}
	}
	return found
}

// TestPreDownload plays an update whose images are pulled before it: the jobs are created once, and deleted when the update
// is done.
func TestPreDownload(t *testing.T) {
	f := newFixture(t)
	f.in.PreDownload = true
	f.set.Annotations = map[string]string{v1alpha1.PreDownloadParallelismKey: "10%", v1alpha1.PreDownloadTimeoutKey: "60"}
	spec := &f.set.Spec.Template.Spec
	spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:1"}}
	spec.ImagePullSecrets, spec.ServiceAccountName = []corev1.LocalObjectReference{{Name: "registry"}}, "agent"
	out := f.plan(t)
	if len(out.CreatePulls) != 2 || preDownloading(&out).Status != "True" {
		t.Fatalf("%d jobs, condition %+v", len(out.CreatePulls), preDownloading(&out))
	}
	job := out.CreatePulls[1]
	revision := "agent-" + out.Status.DaemonSetHash
	if job.Name != revision+"-main" || job.Spec.Image != "agent:2" || job.Spec.Parallelism.String() != "10%" || *job.Spec.PullPolicy.TimeoutSeconds != 60 ||
		*job.Spec.PullPolicy.BackoffLimit != 1 || *job.Spec.CompletionPolicy.TTLSecondsAfterFinished != 600 ||
		!slices.Equal(job.Spec.PullSecrets, []string{"registry"}) || job.Annotations[v1alpha1.ServiceAccountKey] != "agent" ||
		!slices.Equal(job.Spec.Selector.Names, []string{"node-2", "node-1", "node-0"}) || job.Labels["app"] != "agent" || !metav1.IsControlledBy(job, f.set) {
		t.Errorf("job %+v", job)
	}
	f.in.Pulls = out.CreatePulls
	out = f.plan(t)
	if len(out.CreatePulls)+len(out.DeletePulls) > 0 || len(out.UpdateRevisions) != 1 || out.UpdateRevisions[0].Labels[v1alpha1.PreDownloadCreatedKey] != "2" {
		t.Fatalf("actions %+v", out.Actions)
	}
	i := slices.IndexFunc(f.in.Revisions, func(r *appsv1.ControllerRevision) bool { return r.Name == out.UpdateRevisions[0].Name })
	f.in.Revisions[i] = out.UpdateRevisions[0]
	pulls := f.in.Pulls
	f.in.Pulls = nil // They have ended, and were deleted after their time.
	if out = f.plan(t); len(out.CreatePulls)+len(out.UpdateRevisions) > 0 || preDownloading(&out).Reason != "Pulled" {
		t.Errorf("jobs are created again: %+v, condition %+v", out.Actions, preDownloading(&out))
	}
	f.in.Pulls = []*v1alpha1.ImagePullJob{pulls[0].DeepCopy(), pulls[1].DeepCopy()}
	f.in.Pulls[1].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ImagePullJobPullsCreated, Status: "False", Message: "exceeded quota"}}
	if out = f.plan(t); preDownloading(&out).Reason != "PullsRefused" || !strings.Contains(preDownloading(&out).Message, "exceeded quota") {
		t.Errorf("condition %+v", preDownloading(&out))
	}
	f.in.PreDownload = false
	if out = f.plan(t); preDownloading(&out).Reason != "NotNeeded" || len(out.DeletePulls) > 0 {
		t.Errorf("without the gate: condition %+v", preDownloading(&out))
	}
	f.in.PreDownload = true
	for _, pod := range f.pods {
		f.change(pod, func(pod *corev1.Pod) { pod.Labels[appsv1.ControllerRevisionHashLabelKey] = f.set.Status.DaemonSetHash })
	}
	if out = f.plan(t); len(out.DeletePulls) != 2 || preDownloading(&out).Reason != "NotNeeded" {
		t.Errorf("%d jobs are deleted, condition %+v", len(out.DeletePulls), preDownloading(&out))
	}
}

// TestWhichNodesPreDownload checks on which nodes images are pulled, and why they are not.
func TestWhichNodesPreDownload(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fixture)
		nodes  []string
		reason string
		says   string
	}{
		"all": {change: func(*fixture) {}, nodes: []string{"node-2", "node-1", "node-0"}, reason: "Pulling"},
		"unselected": {change: func(f *fixture) {
			f.set.Spec.UpdateStrategy.RollingUpdate.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}},
		"partition": {
			change: func(f *fixture) { f.set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(1)) },
			nodes:  []string{"node-2", "node-1"}, reason: "Pulling",
		},
		"paused": {
			change: func(f *fixture) { f.set.Spec.UpdateStrategy.RollingUpdate.Paused = new(true) },
			nodes:  []string{"node-2", "node-1", "node-0"}, reason: "Pulling",
		},
		"on delete": {
			change: func(f *fixture) {
				f.set.Spec.UpdateStrategy = v1alpha1.DaemonSetUpdateStrategy{Type: v1alpha1.OnDeleteDaemonSetStrategyType}
			},
			nodes: []string{"node-0", "node-1", "node-2"}, reason: "Pulling",
		},
		"the order of the update": {
			change: func(f *fixture) {
				f.set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(1))
				for _, pod := range f.pods {
					if pod.Spec.NodeName == "node-0" {
						f.change(pod, func(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse })
					}
				}
			},
			nodes: []string{"node-0", "node-2"}, reason: "Pulling",
		},
		"all at once": {change: func(f *fixture) {
			f.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromString("100%"))
		}},
		"no new image": {change: func(f *fixture) {
			f.set.Spec.Template.Spec.Containers[0].Image, f.set.Spec.Template.Spec.HostNetwork = "agent:1", true
		}},
		"too few updated pods": {
			change: func(f *fixture) { f.set.Annotations = map[string]string{v1alpha1.PreDownloadMinUpdatedReadyKey: "50%"} },
			reason: "WaitingForUpdatedPods", says: "when 2 updated pods are ready: 0 are",
		},
		"invalid parallelism": {
			change: func(f *fixture) { f.set.Annotations = map[string]string{v1alpha1.PreDownloadParallelismKey: "0"} },
			reason: "InvalidAnnotation", says: `metadata.annotations[apps.kruise.io/image-predownload-parallelism]: Invalid value: "0": must be a number, at least 1`,
		},
		"invalid timeout": {
			change: func(f *fixture) { f.set.Annotations = map[string]string{v1alpha1.PreDownloadTimeoutKey: "5m"} },
			reason: "InvalidAnnotation", says: "must be a number of seconds",
		},
		"invalid minimum": {
			change: func(f *fixture) {
				f.set.Annotations = map[string]string{v1alpha1.PreDownloadMinUpdatedReadyKey: "101%"}
			},
			reason: "InvalidAnnotation", says: "must be a number, at least 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.in.PreDownload = true
			tc.change(f)
			out := f.plan(t)
			var nodes []string
			if len(out.CreatePulls) > 0 {
				nodes = out.CreatePulls[0].Spec.Selector.Names
			}
			if c := preDownloading(&out); !slices.Equal(nodes, tc.nodes) || c.Reason != tc.reason || !strings.Contains(c.Message, tc.says) {
				t.Errorf("nodes %v, want %v; condition %+v, want %s %q", nodes, tc.nodes, c, tc.reason, tc.says)
			}
		})
	}
}
