// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// drain answers for a pod of a node as `kubectl drain` does.
func (d *disruption) drain(pod *corev1.Pod) Step {
	controller := metav1.GetControllerOfNoCopy(pod)
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return Step{Verdict: Info, Text: "drain leaves it: the kubelet runs it from a file"}
	}
	if planning.Finished(pod) {
		return d.eviction(pod)
	}
	if controller != nil && controller.Kind == "DaemonSet" && strings.HasPrefix(controller.APIVersion, appsv1.GroupName+"/") {
		d.flags.Insert("--ignore-daemonsets")
		return Step{Verdict: Info, Text: "drain leaves it with --ignore-daemonsets: a DaemonSet creates it"}
	}
	s := d.eviction(pod)
	if controller == nil {
		s.Evidence = append(s.Evidence, d.needs("--force", "nothing creates it again"))
	}
	if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil }) {
		s.Evidence = append(s.Evidence, d.needs("--delete-emptydir-data", "its volumes emptyDir are lost"))
	}
	if controller != nil && controller.Kind == "DaemonSet" {
		s.Evidence = append(s.Evidence, d.needs("--force", "kubectl takes it for a pod of an apps/v1 DaemonSet, which does not exist"),
			"its set creates another pod on the node at once")
	}
	return s
}

// needs records a flag of `kubectl drain`, and says why it is needed.
func (d *disruption) needs(flag, why string) string {
	d.flags.Insert(flag)
	return fmt.Sprintf("drain needs %s: %s", flag, why)
}

// maxGroups is the number of steps for pods with the same verdict.
const maxGroups = 10

// Grouped returns the answer with one step for the pods with the same verdict and text, and a limited number of steps, those of
// most pods first. A step has the evidence that all of its pods share.
func (x DisruptionExplanation) Grouped() Answer {
	type group struct {
		Step
		pods []string
	}
	var groups []*group
	of := map[[2]string]*group{}
	for _, step := range x.Steps {
		key := [2]string{string(step.Verdict), step.Text}
		g := of[key]
		if g == nil {
			g = &group{Step: step}
			of[key], groups = g, append(groups, g)
		}
		g.Evidence = slices.DeleteFunc(slices.Clone(g.Evidence), func(line string) bool { return !slices.Contains(step.Evidence, line) })
		if g.pods = append(g.pods, strings.TrimPrefix(step.Title, "Pod ")); len(g.pods) > 1 {
			g.Title = "Pods " + text.List(g.pods, text.MaxNames)
		}
	}
	answer := Answer{Conclusion: x.Conclusion, Next: x.Next}
	for _, verdict := range order() {
		same := slices.DeleteFunc(slices.Clone(groups), func(g *group) bool { return g.Verdict != verdict })
		slices.SortStableFunc(same, func(a, b *group) int { return len(b.pods) - len(a.pods) })
		more := 0
		for i, g := range same {
			if i < maxGroups {
				answer.Steps = append(answer.Steps, g.Step)
			} else {
				more += len(g.pods)
			}
		}
		if more > 0 {
			answer.Steps = append(answer.Steps, Step{Title: text.Count(more, "more pod"), Verdict: verdict, Text: "for other reasons, which -o json has"})
		}
	}
	return answer
}
