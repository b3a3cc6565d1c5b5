// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

// sidecarSets adds which SidecarSets have added containers to the pod, and which have not although they select it.
// They prevent no mark.
func (e *explainer) sidecarSets() {
	pod := e.in.Pod
	names := inject.Sets(pod)
	for _, set := range e.in.SidecarSets {
		if at := slices.Index(names, set.Name); at >= 0 {
			names = slices.Delete(names, at, at+1)
			e.add(Step{Title: "SidecarSet " + set.Name, Verdict: Info, Text: e.injected(set)})
		} else if reason := e.notInjected(set); reason != "" {
			e.add(Step{Title: "SidecarSet " + set.Name, Verdict: Info, Text: "has not added its containers: " + reason})
		}
	}
	for _, name := range names {
		stamped := inject.Of(pod, name)
		e.add(Step{
			Title: "SidecarSet " + name, Verdict: Info,
			Text: "added its containers, in the revision " + stamped.Revision + ", and cannot be read or does not exist any more",
		})
	}
}

// injected describes what the pod has of the set.
func (e *explainer) injected(set *v1alpha1.SidecarSet) string {
	stamped := inject.Of(e.in.Pod, set.Name)
	what := fmt.Sprintf("added its containers, in the revision %s", stamped.Revision)
	switch force := set.Status.InForce; {
	case force == nil || force.Revision == stamped.Revision:
	case force.NamedRevision == stamped.Revision:
		what += ", which the set names for new pods"
	default:
		what += "; the latest one is " + force.Revision
	}
	return what
}

// notInjected returns why the pod does not have the containers of the set, or nothing if the set does not select it.
// Other labels of the namespace than its name are not known.
func (e *explainer) notInjected(set *v1alpha1.SidecarSet) string {
	force, pod := set.Status.InForce, e.in.Pod
	accepted := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.SidecarSetAccepted)
	selector, namespace := set.Spec.Selector, set.Spec.Namespace
	if force != nil {
		selector, namespace = force.Selector, force.Namespace
	}
	if parsed, err := metav1.LabelSelectorAsSelector(selector); err != nil || !parsed.Matches(labels.Set(pod.Labels)) ||
		namespace != "" && namespace != pod.Namespace {
		return ""
	}
	injecting := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.SidecarSetInjecting)
	switch {
	case force == nil && accepted != nil:
		return "no generation of it is accepted: " + accepted.Message
	case force == nil:
		return "it has not been accepted yet"
	case injecting == nil || injecting.Status != metav1.ConditionTrue:
		return "new pods do not get them: " + messageOf(injecting)
	case pod.CreationTimestamp.Before(&injecting.LastTransitionTime):
		return fmt.Sprintf("the pod was created at %s, before the set was in force", pod.CreationTimestamp.UTC().Format("15:04:05"))
	case force.NamespaceSelector != nil:
		return "its namespaceSelector does not select the namespace, or the pod was created while no injector answered"
	case set.Annotations[v1alpha1.InjectionFailurePolicyKey] == "Ignore":
		return "the pod was created while no injector answered, or has a container of its own with the name of one of the set's"
	default:
		return "the pod has changed since its creation, or the set has"
	}
}

func messageOf(condition *metav1.Condition) string {
	if condition == nil {
		return "its entry has not been written yet"
	}
	return condition.Message
}

// sidecarSet says how many pods have the containers of a SidecarSet.
func (w *workload) sidecarSet(set *v1alpha1.SidecarSet) {
	status := &set.Status
	w.add(Step{Title: "Pods", Verdict: Info, Text: fmt.Sprintf(
		"%s have the containers, %d of them of the latest revision and %d ready", text.Count(status.MatchedPods, "pod"), status.UpdatedPods, status.ReadyPods,
	)})
	if status.UninjectedPods == 0 {
		return
	}
	advice := "recreate them, for example by kubectl rollout restart of their workloads: " +
		"they were created before the set was in force, or while no injector answered"
	if injecting := meta.FindStatusCondition(status.Conditions, v1alpha1.SidecarSetInjecting); injecting == nil || injecting.Status != metav1.ConditionTrue {
		advice = "pods that are recreated do not get the containers either: " + messageOf(injecting)
	}
	w.problem("Pods without the containers", fmt.Sprintf("%d selected by the set", status.UninjectedPods), selectedBy(set), advice)
}

// selectedBy returns the command that lists the pods that the set selects.
func selectedBy(set *v1alpha1.SidecarSet) string {
	selector, namespace := set.Spec.Selector, set.Spec.Namespace
	if force := set.Status.InForce; force != nil {
		selector, namespace = force.Selector, force.Namespace
	}
	where := "--all-namespaces"
	if namespace != "" {
		where = "-n " + namespace
	}
	return fmt.Sprintf("kubectl get pods %s -l %s", where, text.Shell([]string{metav1.FormatLabelSelector(selector)}))
}
