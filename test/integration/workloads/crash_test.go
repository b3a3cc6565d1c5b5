// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// claims are the claim templates of the scripted sets.
func claims() []corev1.PersistentVolumeClaim {
	return []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse("1Gi"),
			}},
		},
	}}
}

func preDelete() *pub.Lifecycle {
	return &pub.Lifecycle{PreDelete: &pub.LifecycleHook{
		LabelsHandler: map[string]string{"hook": "on"}, MarkPodNotReady: true,
	}}
}

// scripted returns a set with three replicas that has what a set can have.
func (w *world) scripted(kind string) client.Object {
	w.Helper()
	one := intstr.FromInt32(1)
	if kind == "CloneSet" {
		return w.cloneSet("web", 3, func(set *v1alpha1.CloneSet) {
			set.Spec.Template.Labels["hook"] = "on"
			set.Spec.VolumeClaimTemplates, set.Spec.Lifecycle = claims(), preDelete()
			set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType
			set.Spec.UpdateStrategy.MaxUnavailable = &one
		})
	}
	return w.statefulSet("db", 3, func(set *v1beta1.StatefulSet) {
		set.Spec.Template.Labels["hook"] = "on"
		set.Spec.VolumeClaimTemplates, set.Spec.Lifecycle = claims(), preDelete()
		set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{
			PodUpdatePolicy: v1beta1.InPlaceIfPossiblePodUpdateStrategyType, MaxUnavailable: &one,
		}
	})
}

// actor is a set in its own namespace.
type actor struct {
	*world
	set client.Object
}

// play plays the life of all sets at the same time: each is created with three pods, grows to five, is
// updated by recreation, then in place, and shrinks to two. Ten pods are created, whatever happens to the
// program.
func play(actors ...actor) {
	template := func(image, env string) string {
		return fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q,`+
			`"env":[{"name":"V","value":%q}]}]}}}}`, image, env)
	}
	audits := make([]*audit, len(actors))
	for i, a := range actors {
		audits[i] = a.audit(a.set)
		a.release(a.set.GetName())
	}
	for _, phase := range []struct {
		replicas, least, most int
		image, change         string
	}{
		{3, 0, 3, "image:1", ""},
		{5, 3, 5, "image:1", `{"spec":{"replicas":5}}`},
		{5, 4, 5, "image:1", template("image:1", "2")},
		{5, 4, 5, "image:2", template("image:2", "2")},
		{2, 2, 5, "image:2", `{"spec":{"replicas":2}}`},
	} {
		for i, a := range actors {
			audits[i].allow(phase.least, phase.most)
			if phase.change != "" {
				a.Patch(a.set, "%s", phase.change)
			}
		}
		for _, a := range actors {
			a.calm(patience(), a.set, phase.replicas, phase.image)
		}
	}
	for i, a := range actors {
		a.wellFormed(a.set, "2")
		audits[i].finish(3 + 2 + 5)
	}
}

// patience is longer than usual: the program starts again and again.
func patience() await.Poll {
	return await.Poll{Interval: 50 * time.Millisecond, Timeout: 3 * time.Minute}
}

// wellFormed checks the objects of a set at rest.
func (w *world) wellFormed(set client.Object, env string) {
	w.Helper()
	pods := w.stored(set.GetName())
	used := map[string]bool{}
	for name, pod := range pods {
		expect.Equal(w, fmt.Sprintf("pod %s has V", name), env, pod.Spec.Containers[0].Env[0].Value)
		expect.Equal(w, fmt.Sprintf("pod %s", name), string(pub.LifecycleStateNormal), pod.Labels[pub.LifecycleStateKey])
		for _, volume := range pod.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				used[volume.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	if len(used) != len(pods) {
		w.Errorf("%d pods use the claims %v", len(pods), used)
	}
	var claims corev1.PersistentVolumeClaimList
	w.List(&claims)
	var names []string
	for i := range claims.Items {
		claim := &claims.Items[i]
		if owners := claim.OwnerReferences; len(owners) > 0 && owners[0].Kind == "Pod" && !slices.ContainsFunc(
			slices.Collect(maps.Values(pods)), func(p *corev1.Pod) bool { return p.UID == owners[0].UID },
		) {
			continue // Nothing collects garbage here.
		}
		names = append(names, claim.Name)
	}
	for name := range used {
		if !slices.Contains(names, name) {
			w.Errorf("claim %s does not exist; there are %v", name, names)
		}
	}
	if len(names) > 5 {
		w.Errorf("%d claims, at most five were needed: %v", len(names), names)
	}
	var revisions appsv1.ControllerRevisionList
	w.List(&revisions)
	expect.Equal(w, "revisions", 3, len(revisions.Items))
	for i := range revisions.Items {
		if owner := metav1.GetControllerOf(&revisions.Items[i]); owner == nil || owner.UID != set.GetUID() {
			w.Errorf("revision %s has no owner", revisions.Items[i].Name)
		}
	}
}

// TestProcessIsKilledOnceAtEachWrite lets several sets play the script. The process is killed after the
// writes 1, 1+n, 1+2n, ... of the first of n sets, after the writes 2, 2+n, ... of the second, and so on:
// at each position of the script once, by a process that in most cases has done the writes before it.
func TestProcessIsKilledOnceAtEachWrite(t *testing.T) {
	const sets = 6
	for _, kind := range []string{"CloneSet", "StatefulSet"} {
		t.Run(kind, func(t *testing.T) {
			e := servers.Parallel(t)
			actors, index := make([]actor, sets), map[string]int{}
			for i := range actors {
				w := newScene(t, e, func(error) {})
				actors[i], index[w.Namespace] = actor{w, w.scripted(kind)}, i
			}
			var mu sync.Mutex
			var writes [sets]int
			stop := actors[0].run(func(namespace string, _ int) fate {
				i, known := index[namespace]
				if !known {
					return deliver
				}
				mu.Lock()
				defer mu.Unlock()
				if writes[i]++; writes[i]%sets == (i+1)%sets {
					return dieAfter
				}
				return deliver
			})
			play(actors...)
			processes, all := stop()
			t.Logf("%d processes, %d writes", processes, all)
			if least := all / sets / 4; processes < least {
				t.Errorf("%d processes were started for %d writes, want at least %d", processes, all, least)
			}
		})
	}
}

// bothKinds returns a CloneSet and a StatefulSet in namespaces of their own.
func bothKinds(t *testing.T) []actor {
	e := servers.Parallel(t)
	var actors []actor
	for _, kind := range []string{"CloneSet", "StatefulSet"} {
		w := newScene(t, e, func(error) {})
		actors = append(actors, actor{w, w.scripted(kind)})
	}
	return actors
}

// TestResponsesAreLost executes every write, and loses the responses of each third one.
func TestResponsesAreLost(t *testing.T) {
	actors := bothKinds(t)
	actors[0].run(func(_ string, n int) fate {
		if n%3 == 0 {
			return loseResponse
		}
		return deliver
	})
	play(actors...)
}

// TestTwoLeaders runs two processes at the same time: one that has lost its lease and does not know
// it yet, and its successor.
func TestTwoLeaders(t *testing.T) {
	actors := bothKinds(t)
	for range 2 {
		actors[0].run(func(string, int) fate { return deliver })
	}
	play(actors...)
}

// TestAPIServerIsDown stops the API server in the middle of an update. It serves no requests for some
// seconds, because it waits for watches to end.
func TestAPIServerIsDown(t *testing.T) {
	t.Parallel()
	e := env.Start(t, env.RequestTimeout(10*time.Second))
	w := newScene(t, e, func(error) {})
	sets := []client.Object{w.scripted("CloneSet"), w.scripted("StatefulSet")}
	audits := make([]*audit, len(sets))
	for i, set := range sets {
		audits[i] = w.audit(set)
		audits[i].allow(0, 3)
		w.release(set.GetName())
	}
	w.run(func(string, int) fate { return deliver })
	for i, set := range sets {
		w.calm(patience(), set, 3, "image:1")
		audits[i].allow(2, 3)
		w.Patch(set, `{"spec":{"template":{"metadata":{"labels":{"hook":"on"}},`+
			`"spec":{"containers":[{"name":"main","image":"image:2","args":["x"]}]}}}}`)
	}
	w.Until("the first pod is replaced", func() error {
		pods := slices.Collect(maps.Values(w.stored(sets[0].GetName())))
		replaced := slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image == "image:2" })
		return await.ErrorIf(!replaced, "no pod with the new image")
	})
	w.Must(e.StopAPIServer())
	w.Must(e.StartAPIServer())
	for i, set := range sets {
		w.calm(patience(), set, 3, "image:2")
		audits[i].finish(3 + 3)
	}
}
