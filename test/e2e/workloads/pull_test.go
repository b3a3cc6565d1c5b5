// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/await"
)

// TestPullsFromAPrivateRegistry pulls with and without a secret, and updates a CloneSet in place to an image that was
// pulled before: its pods do not ask the registry.
func TestPullsFromAPrivateRegistry(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	r := s.startRegistry()
	v1, v2 := r.push("games/server", "v1", s.Namespace), r.push("games/server", "v2", s.Namespace)
	s.tags = append(s.tags, v1.name, v2.name)
	s.Create(r.secret("pull"), newPull("anonymous", v1))
	anonymous := s.pullEnds("anonymous", imagepull.ReasonNodesFailed)
	if failed, message := anonymous.Status.Failed, anonymous.Status.Message; failed != anonymous.Status.Desired || !strings.Contains(message, "ErrImagePull") || !strings.Contains(strings.ToLower(message), "auth") {
		t.Errorf("a job without a secret has %d failed nodes of %d: %q", failed, anonymous.Status.Desired, message)
	}
	// Not earlier: a job needs no secret for an image that the node has.
	s.Create(newPull("with-secret", v1, "pull"))
	pulled := s.pullEnds("with-secret", imagepull.ReasonCompleted)
	if pulled.Status.Succeeded != pulled.Status.Desired || r.pulled(v1.layer) != int(pulled.Status.Desired) {
		t.Errorf("%d of %d nodes succeeded, and the layer was read %d times", pulled.Status.Succeeded, pulled.Status.Desired, r.pulled(v1.layer))
	}

	set := newCloneSet("server", 2, inPlace, func(set *v1alpha1.CloneSet) {
		set.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(1))
		spec := &set.Spec.Template.Spec
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		spec.Containers[0].Image, spec.Containers[0].Command = v1.name, []string{"/busybox", "sleep", "3600"}
	})
	s.Create(set)
	names := s.settled("server", 2, runs(v1.name))
	patch(s, set, func(set *v1alpha1.CloneSet) {
		set.Spec.UpdateStrategy.Paused, set.Spec.Template.Spec.Containers[0].Image = true, v2.name
	})
	s.Eventually("the image is pulled before the update", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, ctrl.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		for _, c := range set.Status.Conditions {
			if string(c.Type) == planning.PreDownloading && c.Reason == "Pulled" {
				return nil
			}
		}
		return fmt.Errorf("conditions %+v", set.Status.Conditions)
	})
	before := r.pulled(v2.layer)
	patch(s, set, func(set *v1alpha1.CloneSet) { set.Spec.UpdateStrategy.Paused = false })
	if after := s.settled("server", 2, runs(v2.name)); !slices.Equal(names, after) {
		t.Errorf("pods %v were replaced by %v", names, after)
	}
	if got := r.pulled(v2.layer); before == 0 || got != before {
		t.Errorf("the layer was read %d times before the update and %d times after it", before, got)
	}
	for _, name := range names {
		s.startsWithoutPull(name, v2.name)
	}
	s.Eventually("the nodes list the images", func(ctx context.Context) error { return s.list(ctx, v1.name) })
}

// newPull returns a job that pulls an image on all nodes, with one attempt.
func newPull(name string, image image, secrets ...string) *v1alpha1.ImagePullJob {
	return &v1alpha1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ImagePullJobSpec{
			Image: image.name, PullSecrets: secrets, Parallelism: ptr.To(intstr.FromString("100%")),
			PullPolicy: &v1alpha1.ImagePullJobPullPolicy{BackoffLimit: ptr.To[int32](0)},
		},
	}
}

// pullEnds waits until a job is complete, and expects the reason.
func (s *suite) pullEnds(name, reason string) *v1alpha1.ImagePullJob {
	s.Helper()
	job := &v1alpha1.ImagePullJob{}
	s.Eventually(name+" is complete", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, s.Key(name), job); err != nil {
			return err
		}
		return await.ErrorIf(!meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ImagePullJobComplete), "status %+v", job.Status)
	})
	if c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ImagePullJobComplete); c.Reason != reason {
		s.Fatalf("job %s ended with %+v, want the reason %s", name, c, reason)
	}
	return job
}

// startsWithoutPull expects the event of a pod that an image was on the node, and none that it was pulled.
func (s *suite) startsWithoutPull(pod, image string) {
	s.Helper()
	events := &corev1.EventList{}
	s.Eventually("an event about the image of pod "+pod, func(ctx context.Context) error {
		if err := s.Client.List(ctx, events, ctrl.InNamespace(s.Namespace), ctrl.MatchingFields{"involvedObject.name": pod}); err != nil {
			return err
		}
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return strings.Contains(e.Message, image) && strings.Contains(e.Message, "already present on machine")
		}) {
			return fmt.Errorf("%d events", len(events.Items))
		}
		return nil
	})
	for _, e := range events.Items {
		if e.Reason == "Pulling" && strings.Contains(e.Message, image) {
			s.Errorf("pod %s: %s", pod, e.Message)
		}
	}
}

// list expects that the status of each node lists the image.
func (s *suite) list(ctx context.Context, image string) error {
	nodes := &corev1.NodeList{}
	if err := s.Client.List(ctx, nodes); err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if !slices.ContainsFunc(node.Status.Images, func(i corev1.ContainerImage) bool { return slices.Contains(i.Names, image) }) {
			return fmt.Errorf("node %s has %d other images", node.Name, len(node.Status.Images))
		}
	}
	return nil
}
