// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/cri"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/chaos/oracle"
)

const (
	namespace = "games"
	// userValue is the value of the labels that users set.
	userValue = "user"
	// The numbers of names, so that objects are often recreated under the same name.
	podNames, markerNames, keys = 6, 3, 3
)

func apps() []string { return []string{"a", "b"} }

// createPod creates a pod that is bound to a node, with one or two containers.
func (w *world) createPod() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: fmt.Sprintf("pod-%d", w.rand.IntN(podNames)), Labels: map[string]string{"app": apps()[w.rand.IntN(2)]},
	}}
	pod.Spec.NodeName = w.names[w.rand.IntN(len(w.names))]
	pod.Spec.Containers = []corev1.Container{{Name: "main"}}
	if w.rand.IntN(3) == 0 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "side"})
	}
	w.addStartup(pod)
	pod.Status.Phase = corev1.PodPending
	stored, err := w.server.Create("user", pods, pod)
	if err != nil {
		return
	}
	owners := w.server.ownersOf(stored.GetUID())
	owners[userManager][field{Kind: oracle.Label, Name: "app"}] = true
	w.editPod(client.ObjectKeyFromObject(stored), func(pod *corev1.Pod) { pod.ManagedFields = w.server.managedFields(pod.UID) })
}

// anyPod returns one of the pods, or nil if there is none.
func (w *world) anyPod() *corev1.Pod {
	all := w.games()
	if len(all) == 0 {
		return nil
	}
	return all[w.rand.IntN(len(all))]
}

// games returns the pods that are not those of agents.
func (w *world) games() []*corev1.Pod {
	var all []*corev1.Pod
	for _, o := range w.server.List(pods) {
		if o.GetNamespace() == namespace {
			all = append(all, o.(*corev1.Pod)) //nolint:forcetypeassert // all are
		}
	}
	return all
}

func (w *world) editPod(key types.NamespacedName, change func(*corev1.Pod)) {
	_, _ = w.server.Update("user", pods, key, preconditions{}, func(o client.Object) error {
		change(o.(*corev1.Pod)) //nolint:forcetypeassert // of this kind
		return nil
	})
}

// deletePod deletes a pod, or removes it at once.
func (w *world) deletePod() {
	pod := w.anyPod()
	if pod == nil {
		return
	}
	if w.rand.IntN(3) > 0 {
		_ = w.server.Delete("user", pods, client.ObjectKeyFromObject(pod), preconditions{})
		return
	}
	w.removePod(pod)
}

func (w *world) removePod(pod *corev1.Pod) {
	w.server.Remove("kubelet", pods, client.ObjectKeyFromObject(pod))
	n := w.nodes[pod.Spec.NodeName]
	for _, c := range n.containersOf(pod.UID) {
		n.set(c, true)
	}
}

// relabel changes which markers select a pod, or sets a label that a probe may declare.
func (w *world) relabel() {
	pod := w.anyPod()
	if pod == nil {
		return
	}
	key, value := "app", apps()[w.rand.IntN(2)]
	if w.rand.IntN(3) == 0 {
		key, value = markKey(w.rand), userValue
		if w.history.labelled[pod.UID] == nil {
			w.history.labelled[pod.UID] = map[string]bool{}
		}
		w.history.labelled[pod.UID][key] = true
	}
	w.editPod(client.ObjectKeyFromObject(pod), func(pod *corev1.Pod) { w.server.label(pod, key, value) })
}

func markKey(r *rand.Rand) string { return fmt.Sprintf("%sk%d", markPrefix, r.IntN(keys)) }

// newProbe returns a probe whose values differ from those of all others.
func (w *world) newProbe(id, name string) v1alpha1.PodContainerProbe {
	r := w.rand
	w.created++
	value := func(state string) string { return fmt.Sprintf("%d-%s", w.created, state) }
	p := v1alpha1.PodContainerProbe{Name: name, ContainerName: "main"}
	if r.IntN(4) == 0 {
		p.ContainerName = "side"
	}
	p.Probe.Exec = &corev1.ExecAction{Command: []string{id + "/" + name}}
	p.Probe.PeriodSeconds, p.Probe.FailureThreshold = int32(1+r.IntN(5)), int32(1+r.IntN(2)) //nolint:gosec // small
	p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{{
		State: v1alpha1.ProbeSucceeded, Labels: map[string]string{markKey(r): value("yes")},
		Annotations: map[string]string{markKey(r): value("yes")},
	}}
	if r.IntN(2) == 0 {
		p.MarkerPolicy = append(p.MarkerPolicy, v1alpha1.ProbeMarkerPolicy{State: v1alpha1.ProbeFailed, Labels: map[string]string{markKey(r): value("no")}})
	}
	if r.IntN(3) == 0 {
		p.MarkerPolicy = append(
			p.MarkerPolicy, v1alpha1.ProbeMarkerPolicy{State: v1alpha1.ProbeUnknown, Labels: map[string]string{markKey(r): value("unknown")}},
		)
	}
	if r.IntN(2) == 0 {
		p.PodConditionType = markPrefix + name
	}
	w.makeExclusive(&p)
	w.makeStale(&p)
	w.makeValues(&p)
	w.makeWait(&p)
	return p
}

func (w *world) newProbes(id string) []v1alpha1.PodContainerProbe {
	var probes []v1alpha1.PodContainerProbe
	for i := range 1 + w.rand.IntN(2) {
		probes = append(probes, w.newProbe(id, fmt.Sprintf("p%d", i)))
	}
	return probes
}

func (w *world) createMarker() {
	w.createNamed(fmt.Sprintf("m%d", w.rand.IntN(markerNames)), apps()[w.rand.IntN(2)])
}

func (w *world) createNamed(name, app string) {
	w.created++
	marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	marker.Spec.Probes = w.newProbes(fmt.Sprintf("%s.%d", marker.Name, w.created))
	_, _ = w.server.Create("user", markers, marker)
}

func (w *world) anyMarker() *v1alpha1.PodProbeMarker {
	all := w.server.List(markers)
	if len(all) == 0 {
		return nil
	}
	return all[w.rand.IntN(len(all))].(*v1alpha1.PodProbeMarker) //nolint:forcetypeassert // all are
}

// editMarker replaces the probes of a marker by others with the same names.
func (w *world) editMarker() {
	marker := w.anyMarker()
	if marker == nil || marker.DeletionTimestamp != nil {
		return
	}
	id, _, _ := strings.Cut(token(&marker.Spec.Probes[0]), "/")
	probes := w.newProbes(id)
	_, _ = w.server.Update("user", markers, client.ObjectKeyFromObject(marker), preconditions{}, func(o client.Object) error {
		o.(*v1alpha1.PodProbeMarker).Spec.Probes = probes //nolint:forcetypeassert // of this kind
		return nil
	})
}

func (w *world) deleteMarker() {
	if marker := w.anyMarker(); marker != nil {
		_ = w.server.Delete("user", markers, client.ObjectKeyFromObject(marker), preconditions{})
	}
}

// recreateMarker deletes a marker, and creates another one with its name and its selector as soon as it is gone.
func (w *world) recreateMarker() {
	marker := w.anyMarker()
	if marker == nil {
		return
	}
	_ = w.server.Delete("user", markers, client.ObjectKeyFromObject(marker), preconditions{})
	for range w.rand.IntN(10) {
		w.drain(1)
		w.pass(time.Duration(w.rand.IntN(200)) * time.Millisecond)
	}
	w.createNamed(marker.Name, marker.Spec.Selector.MatchLabels["app"])
}

// moveAway labels a pod so that a marker does not select it any more, and deletes the marker at the same time.
func (w *world) moveAway() {
	marker, pod := w.anyMarker(), w.anyPod()
	if marker == nil || pod == nil || !matches(marker, pod.Labels) {
		return
	}
	for _, app := range apps() {
		if app != pod.Labels["app"] {
			w.editPod(client.ObjectKeyFromObject(pod), func(pod *corev1.Pod) { w.server.label(pod, "app", app) })
			break
		}
	}
	_ = w.server.Delete("user", markers, client.ObjectKeyFromObject(marker), preconditions{})
	if w.rand.IntN(2) == 0 {
		// The handlers run later.
		for _, m := range w.managers {
			m.cache.of[pods].advance(1000)
			m.cache.of[markers].advance(1000)
		}
	}
}

// flip changes the result of a probe in a pod, or of all pods.
func (w *world) flip() {
	pod, marker := w.anyPod(), w.anyMarker()
	if pod == nil || marker == nil {
		return
	}
	probe := &marker.Spec.Probes[w.rand.IntN(len(marker.Spec.Probes))]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcomes[string(pod.UID)+" "+token(probe)] = !w.outcome(pod.UID, token(probe))
}

// kubelet does the next thing for up to n pods: it starts pods and removes those that are being deleted.
func (w *world) kubelet(n int) {
	for _, o := range w.server.List(pods) {
		if n <= 0 {
			return
		}
		pod := o.(*corev1.Pod) //nolint:forcetypeassert // all are
		switch {
		case w.isSilent(pod.Spec.NodeName):
			continue
		case pod.DeletionTimestamp != nil:
			w.removePod(pod)
		case pod.Status.Phase == corev1.PodPending:
			w.editPod(client.ObjectKeyFromObject(pod), func(pod *corev1.Pod) {
				pod.Status.Phase = corev1.PodRunning
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue})
			})
			for _, c := range pod.Spec.Containers {
				w.run(pod, c.Name)
			}
		default:
			continue
		}
		n--
	}
}

// run starts a container of a pod, again if it has run.
func (w *world) run(pod *corev1.Pod, name string) {
	w.created++
	id := fmt.Sprintf("c%d", w.created)
	w.noteStartup(pod, name, id)
	w.nodes[pod.Spec.NodeName].set(cri.Instance{
		ContainerKey: identity.ContainerKey{PodUID: pod.UID, Name: name}, Pod: client.ObjectKeyFromObject(pod),
		ID: id, Running: true, StartedAt: time.Now(),
	}, false)
}

// restartContainer ends a container, and mostly starts it again.
func (w *world) restartContainer() {
	pod := w.anyPod()
	if pod == nil || pod.Status.Phase != corev1.PodRunning {
		return
	}
	n := w.nodes[pod.Spec.NodeName]
	all := n.containersOf(pod.UID)
	if len(all) == 0 {
		return
	}
	c := all[w.rand.IntN(len(all))]
	w.mu.Lock()
	w.history.ended[pod.UID], w.history.restarted[pod.UID] = true, true
	w.mu.Unlock()
	if c.Running {
		c.Running, c.Reason = false, "exited with code 1"
		n.set(c, false)
	}
	for range w.rand.IntN(4) {
		w.churn()
	}
	last, err := w.server.Get(pods, client.ObjectKeyFromObject(pod))
	if err == nil && last.GetUID() == pod.UID && last.(*corev1.Pod).Status.Phase == corev1.PodRunning && w.rand.IntN(4) > 0 { //nolint:forcetypeassert // of this kind
		w.run(pod, c.Name)
	}
}

// endPod ends the containers of a pod for good.
func (w *world) endPod() {
	pod := w.anyPod()
	if pod == nil || pod.Status.Phase != corev1.PodRunning {
		return
	}
	w.mu.Lock()
	w.history.ended[pod.UID] = true
	w.mu.Unlock()
	n := w.nodes[pod.Spec.NodeName]
	for _, c := range n.containersOf(pod.UID) {
		c.Running, c.Reason = false, "exited with code 0"
		n.set(c, false)
	}
	w.editPod(client.ObjectKeyFromObject(pod), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
}

// deleteReport deletes a ProbeReport, which its agent must restore.
func (w *world) deleteReport() {
	if all := w.server.List(reports); len(all) > 0 {
		w.server.Remove("user", reports, client.ObjectKeyFromObject(all[w.rand.IntN(len(all))]))
	}
}

// restartManager starts another manager, and ends the others before or later.
func (w *world) restartManager() {
	before := slices.Clone(w.managers)
	if w.rand.IntN(2) == 0 {
		endAll(before)
	}
	w.addManager()
	for range w.rand.IntN(30) {
		w.churn()
	}
	endAll(before)
}

func endAll(all []*manager) {
	for _, m := range all {
		m.kill()
	}
}

func (w *world) addManager() {
	w.managers = append(w.managers, w.newManager(func() int {
		if w.chaos && w.rand.Float64() < w.faults.stale {
			return w.rand.IntN(12)
		}
		return 0
	}))
}

func (w *world) restartAgent() {
	n := w.anyNode()
	if !n.running {
		return
	}
	w.stopAgent(n)
	for range w.rand.IntN(10) {
		w.churn()
	}
	w.startAgent(n)
}

// relist ends a watch of a manager or of an agent.
func (w *world) relist() {
	if w.rand.IntN(3) == 0 && len(w.watches) > 0 {
		at := w.rand.IntN(len(w.watches))
		if w.server.Version%2 == 0 {
			w.watches[at].expire()
		} else {
			w.watches[at].end()
		}
		w.watches = slices.Delete(w.watches, at, at+1)
		return
	}
	w.anyManager(func(m *manager) { m.cache.of[w.rand.IntN(len(m.cache.of))].relist() })
}
