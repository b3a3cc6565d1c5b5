// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepulls_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/openkruise"
)

// TestRestart ends the program while a job pulls.
func TestRestart(t *testing.T) {
	stop := start(t, 100)
	w := newWorld(t, 20)
	joined := time.Now()
	await.Until(t, "nodes that joined before the second in which the job starts", func(context.Context) (string, error) {
		if time.Now().Unix() == joined.Unix() {
			return "the same second", nil
		}
		return "", nil
	})
	w.kubelets(func(pod *corev1.Pod) string {
		if pod.Spec.NodeName == w.NodeName("0") {
			return "" // The first node takes long.
		}
		return "sha256:1"
	})
	w.create(parallelism(3))
	w.until("some nodes have the image", func() error { return w.atLeast(9) })
	stop()
	w.kubelets(func(*corev1.Pod) string { return "sha256:1" })
	start(t, 100)
	w.release("sha256:1")
	w.ends("Completed")
	w.counts("20 0 20 0")
	asked, most := w.asks()
	if again := len(asked) - 20; most > 3 || sets.New(asked...).Len() != 20 || again > 3 {
		t.Errorf("at most %d pods, %d nodes were asked again: %v", most, again, asked)
	}
}

// TestPlacesAreShared checks that two namespaces share the places of the cluster, although one came first. One is left to others.
func TestPlacesAreShared(t *testing.T) {
	start(t, 4)
	first, second := newWorld(t, 12), newWorld(t, 12)
	for _, w := range []*world{first, second} {
		w.kubelets(func(*corev1.Pod) string { return "" })
	}
	first.create(parallelism(12))
	first.counts("12 3 0 0")
	second.create(parallelism(12))
	first.release("sha256:1")
	first.kubelets(func(*corev1.Pod) string { return "" })
	second.counts("12 2 0 0")
	first.counts("12 2 3 0")
	first.release("sha256:1")
	second.release("sha256:1")
	first.ends("Completed")
	second.ends("Completed")
	if _, most := first.asks(); most > 4 {
		t.Errorf("at most %d pods, want 4", most)
	}
}

// TestTakeOver checks that jobs of OpenKruise that have ended stay as they are, and that a running one begins again.
func TestTakeOver(t *testing.T) {
	w := newWorld(t, 2)
	jobs := openkruise.Restore(t, server.Client, w.Namespace, "ImagePullJob", `"test":"recorded"`, `"world":"`+w.Namespace+`"`)
	start(t, 100)
	for _, job := range jobs {
		w.job = &v1alpha1.ImagePullJob{ObjectMeta: w.Meta(job.GetName())}
		switch job.GetName() {
		case "paused":
			w.has(v1alpha1.ImagePullJobComplete, metav1.ConditionFalse, "Paused")
			expect.NoError(t, server.Client.Delete(t.Context(), w.job)) // With OpenKruise's finalizer.
			w.Gone(w.job)
		case "running":
			w.ends("Completed")
			w.counts("2 0 2 0")
		default:
			w.until("the job is processed", func() error {
				if w.job.Status.ObservedGeneration == 0 {
					return errors.New("not yet")
				}
				return openkruise.Changed(t, server.Client, job)
			})
		}
	}
	if asked, _ := w.asks(); len(asked) != 2 {
		t.Errorf("asked %v, want each node once", asked)
	}
}
