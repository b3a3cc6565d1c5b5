// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// kruiseManager is the field manager of OpenKruise.
const kruiseManager = "kruise-manager"

// groups are the names of the pods that findings concern.
type groups map[Finding][]string

func (g groups) add(pod *corev1.Pod, f Finding) {
	g[f] = append(g[f], pod.Name)
}

// findings returns the findings with the numbers of the pods.
func (g groups) findings() []Finding {
	var found []Finding
	for f, names := range g {
		pods := "pod " + slices.Min(names)
		if len(names) > 1 {
			pods = fmt.Sprintf("%d pods such as %s", len(names), slices.Min(names))
		}
		f.OpenKruise = pods + ": " + f.OpenKruise
		found = append(found, f)
	}
	return found
}

// checkPods returns the findings about pods: keys that others own too, keys that several markers
// set, marks that no marker declares, and pods on virtual nodes.
func checkPods(c Cluster, markers []*plan.Marker) []Finding {
	byNamespace := map[string][]*plan.Marker{}
	for _, m := range plan.Sorted(markers) {
		byNamespace[m.Namespace] = append(byNamespace[m.Namespace], m)
	}
	found := groups{}
	for _, pod := range c.Pods {
		if plan.Ending(pod) {
			continue
		}
		probes := plan.Selected(pod, byNamespace[pod.Namespace], plan.KubernetesDefaults()).Probes
		claims, conflicts := mark.Claim(probes)
		found.leftMarks(pod, claims)
		if len(probes) == 0 {
			continue
		}
		found.conflicts(pod, conflicts)
		found.otherOwners(pod, probes, claims)
		if c.Virtual.Has(pod.Spec.NodeName) {
			found.virtual(pod, probes)
		}
	}
	return found.findings()
}

// addMarker adds a finding about a probe of a marker.
func (g groups) addMarker(level Severity, pod *corev1.Pod, probe identity.ID, field, openKruise, seamark, action string) {
	g.add(pod, Finding{
		Level: level, Kind: "PodProbeMarker", Namespace: pod.Namespace, Name: probe.Marker, Field: field,
		OpenKruise: openKruise, Seamark: seamark, Action: action,
	})
}

func (g groups) conflicts(pod *corev1.Pod, conflicts []mark.Conflict) {
	for _, conflict := range conflicts {
		g.addMarker(Changes, pod, conflict.Loser, conflict.Key.String(),
			fmt.Sprintf("probe %s declares the same key, and the last write takes effect", conflict.Winner),
			fmt.Sprintf("only probe %s sets the key", conflict.Winner), "use different keys")
	}
}

// otherOwners finds declared keys that others set: Seamark removes a key if the state does not set
// it, whoever has set it.
func (g groups) otherOwners(pod *corev1.Pod, probes []plan.PlannedProbe, claims mark.Claims) {
	others := mark.Owners(slices.DeleteFunc(slices.Clone(pod.ManagedFields), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == v1alpha1.FieldManager || isStatusOfKruise(e)
	}))
	for _, probe := range probes {
		for _, key := range mark.Declared(probe.Source) {
			if claims[key] != probe.ID || key.Kind == mark.KindCondition {
				continue
			}
			for _, owner := range others[key] {
				g.addMarker(Changes, pod, probe.ID, key.String(),
					fmt.Sprintf("%s has set the key too, and it stays in a state without a policy for it", owner.Manager),
					"removes the key in such a state, whoever has set it", "use another key, or a policy for both states")
			}
		}
	}
}

// isStatusOfKruise reports whether the entry has the marks that OpenKruise's manager has written.
func isStatusOfKruise(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == kruiseManager && e.Subresource == "status"
}

// leftMarks finds labels and annotations that OpenKruise has set and that no marker declares.
// Conditions are not among them: other controllers of OpenKruise set conditions too.
func (g groups) leftMarks(pod *corev1.Pod, claims mark.Claims) {
	left := mark.Owners(slices.DeleteFunc(slices.Clone(pod.ManagedFields), func(e metav1.ManagedFieldsEntry) bool {
		return !isStatusOfKruise(e)
	}))
	for key := range left {
		if _, declared := claims[key]; declared || key.Kind == mark.KindCondition {
			continue
		}
		verb := "label"
		if key.Kind == mark.KindAnnotation {
			verb = "annotate"
		}
		g.add(pod, Finding{
			Level: Changes, Kind: "Namespace", Name: pod.Namespace, Field: key.String(),
			OpenKruise: "a marker that does not select the pod any more has set it",
			Seamark:    "does not know the key, and never removes it",
			Action:     fmt.Sprintf("kubectl -n %s %s pods --all %s-", pod.Namespace, verb, key.Name),
		})
	}
}

func (g groups) virtual(pod *corev1.Pod, probes []plan.PlannedProbe) {
	seen := map[string]bool{}
	for _, probe := range probes {
		if !seen[probe.ID.Marker] {
			seen[probe.ID.Marker] = true
			g.addMarker(Blocks, pod, probe.ID, "", "runs on a virtual node, whose provider probes it with EnablePodProbeMarkerOnServerless",
				"does not probe it by default",
				"install Seamark with featureGates.EnablePodProbeMarkerOnServerless=true (docs/platforms/virtual-nodes.md)")
		}
	}
}
