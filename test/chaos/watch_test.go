// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/chaos/oracle"
)

// lookInterval is how often the marks of all pods are compared with the rules.
const lookInterval = 500 * time.Millisecond

// placeOf is a place of a pod for marks.
type placeOf struct {
	uid   types.UID
	place oracle.Mark
}

// watcher passes all changes of pods to the ledger, and measures for how long marks are wrong.
type watcher struct {
	w *world

	// pods and markers are the last ones that run has read, and listed is when it began to.
	pods    *corev1.PodList
	markers *v1alpha1.PodProbeMarkerList
	listed  time.Time

	mu sync.Mutex
	// places are all that a marker of the run has declared, and ended the claims that were deleted.
	places map[oracle.Mark]bool
	ended  map[types.UID]bool
	// rules are the markers of the last look, and edited is when they last changed. labels are what selects pods, and
	// relabeled is when that last changed.
	rules     string
	edited    time.Time
	labels    map[types.UID]string
	relabeled map[types.UID]time.Time
	// settled is when all marks were right, and nothing failed. lost are the marks that were lost since.
	settled time.Time
	lost    map[placeOf]bool
	// worst is the longest time that a mark was wrong, and where. problems are lost marks and claims.
	worst    time.Duration
	where    string
	problems []string
}

// newWatcher starts a watcher that stops when the test ends.
func newWatcher(w *world) *watcher {
	w.Helper()
	o := &watcher{
		w: w, pods: &corev1.PodList{}, markers: &v1alpha1.PodProbeMarkerList{}, places: map[oracle.Mark]bool{}, ended: map[types.UID]bool{},
		lost: map[placeOf]bool{}, labels: map[types.UID]string{}, relabeled: map[types.UID]time.Time{},
	}
	revision, err := w.revision(w.Context())
	w.must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.follow(ctx, revision+1, o.see); err != nil {
			w.Errorf("follow the changes in etcd: %v", err)
		}
	})
	running.Go(func() { o.run(ctx) })
	w.Cleanup(func() { cancel(); running.Wait() })
	return o
}

// see notes a change of an object. No rule allows that a claim is deleted.
func (o *watcher) see(c change) {
	switch object := c.object.(type) {
	case *corev1.Pod:
		o.w.ledger.See(object, c.gone)
	case *corev1.PersistentVolumeClaim:
		o.mu.Lock()
		defer o.mu.Unlock()
		if ends := c.gone || object.DeletionTimestamp != nil; ends && !o.ended[object.UID] {
			o.ended[object.UID] = true
			o.problems = append(o.problems, fmt.Sprintf("claim %s with the UID %s was deleted", object.Name, object.UID))
		}
	case *v1alpha1.PodProbeMarker:
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, place := range oracle.Places(object) {
			o.places[place] = true
		}
	}
}

func (o *watcher) run(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := o.look(ctx); err != nil && ctx.Err() == nil {
			o.w.Errorf("look at the marks: %v", err)
			return
		}
	}
}

// listTimeout limits a request of the watcher.
const listTimeout = 5 * time.Second

// read lists pods and markers. While the API server does not answer, the last answer is what everybody knows.
func (o *watcher) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	began, pods, markers, again := time.Now(), &corev1.PodList{}, &v1alpha1.PodProbeMarkerList{}, &v1alpha1.PodProbeMarkerList{}
	for _, list := range []client.ObjectList{markers, pods, again} {
		if o.w.Client.List(ctx, list, client.InNamespace(o.w.Namespace)) != nil {
			return
		}
	}
	// If the markers changed meanwhile, it is not known which ones the pods followed.
	if rulesOf(markers) == rulesOf(again) {
		o.pods, o.markers, o.listed = pods, markers, began
	}
}

// look compares the marks of all running pods with those that they should have.
func (o *watcher) look(ctx context.Context) error {
	o.read(ctx)
	pods, markers := o.pods, o.markers
	o.noteRules(markers)
	if have, _ := o.exclusive(pods, markers); len(have) > 1 {
		o.mu.Lock()
		o.problems = append(o.problems, fmt.Sprintf("pods %q have the exclusive label at one time", have))
		o.mu.Unlock()
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		o.noteLabels(pod)
		if oracle.Ended(pod) || !isRunning(pod) {
			continue
		}
		since := o.w.truth.since(pod)
		wrong, err := o.differences(pod, markers)
		if err != nil {
			return err
		}
		if o.w.truth.since(pod).After(since) {
			continue // An answer changed meanwhile.
		}
		o.note(pod, since, wrong)
	}
	return nil
}

// rulesOf returns a text that is equal for equal markers.
func rulesOf(markers *v1alpha1.PodProbeMarkerList) string {
	var rules []string
	for i := range markers.Items {
		marker := &markers.Items[i]
		rules = append(rules, fmt.Sprintf("%s %d %t", marker.UID, marker.Generation, marker.DeletionTimestamp != nil))
	}
	slices.Sort(rules)
	return strings.Join(rules, "\n")
}

// noteRules notes when the markers have changed.
func (o *watcher) noteRules(markers *v1alpha1.PodProbeMarkerList) {
	rules := rulesOf(markers)
	o.mu.Lock()
	defer o.mu.Unlock()
	if rules != o.rules {
		o.rules, o.edited = rules, time.Now()
	}
}

// noteLabels notes when what selects the pod has changed.
func (o *watcher) noteLabels(pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if label := pod.Labels["app"]; label != o.labels[pod.UID] {
		o.labels[pod.UID], o.relabeled[pod.UID] = label, time.Now()
	}
}

// differences returns the wrong marks of a running pod.
func (o *watcher) differences(pod *corev1.Pod, markers *v1alpha1.PodProbeMarkerList) (map[oracle.Mark]string, error) {
	var all []*v1alpha1.PodProbeMarker
	for i := range markers.Items {
		all = append(all, &markers.Items[i])
	}
	want, err := oracle.Expect(pod, all, o.w.truth.state)
	if err != nil {
		return nil, fmt.Errorf("marks of pod %s: %w", pod.Name, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	places := make([]oracle.Mark, 0, len(o.places))
	for place := range o.places {
		places = append(places, place)
	}
	return oracle.Differences(pod, want, places), nil
}

// exclusive returns the pods that have the exclusive label, and those that may get it. While the marker does not exist,
// there are none.
func (o *watcher) exclusive(pods *corev1.PodList, markers *v1alpha1.PodProbeMarkerList) (have, may []string) {
	if !slices.ContainsFunc(markers.Items, func(m v1alpha1.PodProbeMarker) bool { return m.Name == markerPort().Name && m.DeletionTimestamp == nil }) {
		return nil, nil
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Labels[exclusiveLabel] != "" {
			have = append(have, pod.Name)
		}
		if pod.Labels["app"] == loadLabel && o.w.truth.exists(pod.Name, answerPort) {
			may = append(may, pod.Name)
		}
	}
	return have, may
}

// note measures for how long marks are wrong, and finds those that are wrong although nothing that they depend on has
// changed since all were right.
func (o *watcher) note(pod *corev1.Pod, since time.Time, wrong map[oracle.Mark]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.settled.Before(o.listed) {
		return // What was read before does not count for the next fault.
	}
	for _, change := range []time.Time{o.edited, o.relabeled[pod.UID]} {
		if change.After(since) {
			since = change
		}
	}
	for place, what := range wrong {
		if key := (placeOf{pod.UID, place}); since.Before(o.settled) && !o.lost[key] {
			o.lost[key] = true
			o.problems = append(o.problems, fmt.Sprintf("mark of pod %s on %s: %s, but it was right, and nothing has changed for %s",
				pod.Name, pod.Spec.NodeName, what, time.Since(since).Round(time.Millisecond)))
		}
		if age := time.Since(since); age > o.worst {
			o.worst, o.where = age, fmt.Sprintf("pod %s: %s", pod.Name, what)
		}
	}
}

// settle records that all marks are right now.
func (o *watcher) settle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settled, o.lost = time.Now(), map[placeOf]bool{}
}

// take returns and forgets what was found since the last call.
func (o *watcher) take() (worst time.Duration, where string, problems []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	worst, where, problems = o.worst, o.where, o.problems
	o.worst, o.where, o.problems = 0, "", nil
	return worst, where, problems
}

// isRunning reports whether all containers of the pod run.
func isRunning(pod *corev1.Pod) bool {
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Running == nil {
			return false
		}
	}
	return pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses) == len(pod.Spec.Containers)
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}
