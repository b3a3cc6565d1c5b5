// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

const own = "seamark-system"

// acceptedSet returns a set of the namespace games that selects the app, with its revision.
func acceptedSet(t *testing.T, app string) (*v1alpha1.SidecarSet, *appsv1.ControllerRevision) {
	t.Helper()
	set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "logs"}, Spec: v1alpha1.SidecarSetSpec{
		Selector:   &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		Containers: []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "logs", Image: "logs:1"}}}, Namespace: "games",
	}}
	revision, err := history.New(set, own, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	set.Status.InForce = &v1alpha1.SidecarSetInForce{Selector: set.Spec.Selector, Namespace: "games", Revision: revision.Name}
	return set, revision
}

// secondSet returns a set that selects what the first one does, with its revision.
func secondSet(t *testing.T, first *v1alpha1.SidecarSet) (*v1alpha1.SidecarSet, *appsv1.ControllerRevision) {
	t.Helper()
	second := first.DeepCopy()
	second.Name, second.UID = "metrics", "metrics"
	revision, err := history.New(second, own, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	second.Status.InForce.Revision = revision.Name
	return second, revision
}

// newSets returns the sets of a cache and an API server.
func newSets(t *testing.T, cached, stored *v1alpha1.SidecarSet, calls interceptor.Funcs, others ...client.Object) *accepted {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	sets := fakeapi.NewStore[any](t, indexers(), nil)
	if cached != nil {
		expect.NoError(t, sets.Add(cached))
	}
	if stored != nil {
		others = append(others, stored)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(others...).WithInterceptorFuncs(calls).Build()
	return newAccepted(sets, api, api, own)
}

// TestEntriesAreNewerThanTheCache asks for pods that an entry selects: what the cache says about other pods than these
// is not believed.
func TestEntriesAreNewerThanTheCache(t *testing.T) {
	now, revision := acceptedSet(t, "game")
	before, _ := acceptedSet(t, "another")
	paused, undecided, refused := now.DeepCopy(), now.DeepCopy(), now.DeepCopy()
	paused.Spec.InjectionStrategy.Paused = true
	undecided.Status.InForce = nil
	refused.Status.InForce = nil
	refused.Status.Conditions = []metav1.Condition{{Type: v1alpha1.SidecarSetAccepted, Status: metav1.ConditionFalse}}
	down := interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no connection")
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("no connection")
		},
	}
	for name, test := range map[string]struct {
		cached, stored *v1alpha1.SidecarSet
		calls          interceptor.Funcs
		injects        bool
		err            string
	}{
		"cached":                   {cached: now, stored: before, injects: true},
		"new":                      {stored: now, injects: true},
		"changed":                  {cached: before, stored: now, injects: true},
		"changed to other pods":    {cached: before, stored: before},
		"gone":                     {},
		"paused":                   {stored: paused},
		"paused, cached":           {cached: paused, stored: paused},
		"no longer paused":         {cached: paused, stored: now, injects: true},
		"never accepted":           {stored: refused},
		"not accepted again":       {stored: undecided, err: "SidecarSet logs is not accepted yet, or not again"},
		"the API server is down":   {cached: before, stored: now, calls: down, err: "no connection"},
		"the revision is not read": {cached: now, calls: down, err: "no connection"},
	} {
		t.Run(name, func(t *testing.T) {
			sets := newSets(t, test.cached, test.stored, test.calls, revision)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Labels: map[string]string{"app": "game"}}}
			check := func(of string, injects bool, err error) {
				if injects != test.injects || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
					t.Errorf("%s injects %t, error %v", of, injects, err)
				}
			}
			choice, err := sets.Choose(t.Context(), "logs", pod, "uid")
			check("the entry of the set", choice.Revision != nil, err)
			choices, err := sets.ChooseBound(t.Context(), pod, "uid", "")
			check("the entry of the group", len(choices) == 1 && choices[0].Revision != nil, err)
		})
	}
}

// TestGroupsAreNewerThanTheCache asks for a pod that two sets of a group select, while the cache has one of them: the other
// one is read if the entry is newer than the cache, and only then.
func TestGroupsAreNewerThanTheCache(t *testing.T) {
	first, revision := acceptedSet(t, "game")
	second, other := secondSet(t, first)
	for name, test := range map[string]struct {
		cache, version string
		want           string
		reads          int
	}{
		"no version":                {"10", "", "logs", 0},
		"an unknown one":            {"10", "behind", "logs", 0},
		"an older entry":            {"10", "9", "logs", 0},
		"the cache has it":          {"10", "10", "logs", 0},
		"a newer entry":             {"10", "11", "logs metrics", 1},
		"a cache without a version": {"", "9", "logs metrics", 1},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			cached := first.DeepCopy()
			cached.ResourceVersion = test.cache
			sets := newSets(t, cached, nil, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					reads++
					return c.List(ctx, list, options...)
				},
			}, first.DeepCopy(), second.DeepCopy(), revision.DeepCopy(), other.DeepCopy())
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Labels: map[string]string{"app": "game"}}}
			choices, err := sets.ChooseBound(t.Context(), pod, "uid", test.version)
			var got []string
			for _, choice := range choices {
				if choice.Revision != nil {
					got = append(got, choice.Set)
				}
			}
			if err != nil || strings.Join(got, " ") != test.want || reads != test.reads {
				t.Errorf("%d reads, sets %v, error %v, want %d and %s", reads, got, err, test.reads, test.want)
			}
		})
	}
}

// TestReadsAreShared asks for many pods at the same time that the cache does not select: few reads answer all.
func TestReadsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, revision := acceptedSet(t, "another")
		reads, release := 0, make(chan struct{})
		sets := newSets(t, before, before, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				reads++
				<-release
				return c.Get(ctx, key, object, options...)
			},
		}, revision)
		const pods = 300
		var done sync.WaitGroup
		for range pods {
			done.Go(func() {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Labels: map[string]string{"app": "game"}}}
				if choice, err := sets.Choose(t.Context(), "logs", pod, "uid"); err != nil || choice.Selects {
					t.Errorf("choice %+v, error %v", choice, err)
				}
			})
		}
		// One read has started, and all others wait for it.
		synctest.Wait()
		close(release)
		done.Wait()
		if reads != 2 {
			t.Errorf("%d reads for %d pods, want 2", reads, pods)
		}
	})
}

// TestPartialDecisionOfAPod calls the injector twice for each of many pods, as API servers do if another webhook has changed a
// pod. Each call has another UID.
func TestPartialDecisionOfAPod(t *testing.T) {
	set, latest := acceptedSet(t, "game")
	old := set.DeepCopy()
	old.Spec.Containers[0].Name, old.Spec.Containers[0].Image = "former", "logs:0"
	stable, err := history.New(old, own, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	set.Status.InForce.NamedRevision, set.Status.InForce.Policy = stable.Name, v1alpha1.PartialSidecarSetInjectRevisionPolicy
	set.Spec.UpdateStrategy.Partition = new(intstr.FromString("50%"))
	sets := newSets(t, set, set, interceptor.Funcs{}, latest, stable)
	known := func(set, revision string) *inject.Revision { return sets.Known(t.Context(), set, revision) }
	count := map[string]int{}
	for i := range 100 {
		pod := gamePod()
		for call := range 2 {
			choice, err := sets.Choose(t.Context(), "logs", pod, types.UID(fmt.Sprint(i, call)))
			if err == nil {
				pod, _, err = inject.Inject(pod, choice.Revision, known, metav1.Time{})
			}
			if err != nil || len(pod.Spec.Containers) != 1 || inject.Of(pod, "logs").Revision != choice.Revision.Name {
				t.Fatalf("pod %d, call %d: %+v, error %v", i, call, pod, err)
			}
			if call == 0 {
				count[choice.Revision.Name]++
			} else {
				count[choice.Revision.Name+" again"]++
			}
		}
	}
	for _, name := range []string{stable.Name, latest.Name} {
		if first, again := count[name], count[name+" again"]; first < 20 || first != again {
			t.Errorf("%d pods have revision %s, and %d after the second call", first, name, again)
		}
	}
}

// TestParsedRevisionsAreKept checks that a revision is parsed once, and again when it has changed.
func TestParsedRevisionsAreKept(t *testing.T) {
	_, revision := acceptedSet(t, "game")
	sets := newSets(t, nil, nil, interceptor.Funcs{})
	parse := func() *inject.Revision {
		parsed, err := sets.parse(revision)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	revision.ResourceVersion = "1"
	first := parse()
	if parse() != first {
		t.Error("the revision is parsed twice")
	}
	revision.ResourceVersion = "2"
	revision.Annotations = map[string]string{v1alpha1.SidecarSetHashKey: "changed"}
	if second := parse(); second.Hash != "changed" || first.Hash == "changed" {
		t.Errorf("hash %s after a change, and %s before", second.Hash, first.Hash)
	}
	revision.UID = "another"
	revision.Annotations[v1alpha1.SidecarSetHashKey] = "created again"
	if third := parse(); third.Hash != "created again" {
		t.Errorf("hash %s of another revision of the name", third.Hash)
	}
}
