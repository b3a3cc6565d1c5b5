// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
)

// placement is what is known about the nodes of a template.
type placement struct {
	// fits is the number of nodes that fit, and without those of them that have no pod.
	fits    int
	without []string
	// misfits are the nodes that do not fit and have no pod, by reason. leaving are those that have one.
	misfits map[string][]string
	leaving []string
}

// place compares the nodes with a template. leaves says why a node that fits is left out, nothing if it is not. It returns
// false if this is not possible.
func (w *workload) place(spec *corev1.PodSpec, leaves func(*nodefit.Template, *corev1.Node) string) (placement, bool) {
	found := placement{misfits: map[string][]string{}}
	if w.unread(permission.Nodes, "Nodes", "the nodes") {
		return found, false
	}
	fit, err := nodefit.Compile(spec)
	if err != nil {
		w.problem("Nodes", err.Error(), w.describe())
		return found, false
	}
	has := map[string]bool{}
	for _, pod := range w.pods {
		has[nodefit.Target(pod)] = true
	}
	for _, node := range slices.SortedFunc(slices.Values(w.given.Nodes), func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) }) {
		fits, left := fit.Node(node), leaves(fit, node)
		switch {
		case fits == nodefit.Yes && !has[node.Name] && left != "":
			found.misfits[left] = append(found.misfits[left], node.Name)
		case fits == nodefit.Yes && !has[node.Name]:
			found.without = append(found.without, node.Name+notReady(node))
			found.fits++
		case fits == nodefit.Yes:
			found.fits++
		case !has[node.Name]:
			found.misfits[fit.Why(node)] = append(found.misfits[fit.Why(node)], node.Name)
		case fits == nodefit.No:
			found.leaving = append(found.leaving, fmt.Sprintf("%s: %s", node.Name, fit.Why(node)))
		}
	}
	return found, true
}

// notReady returns a remark about a node that is not ready.
func notReady(node *corev1.Node) string {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return " (not ready)"
		}
	}
	return ""
}

// nodes adds the steps about the nodes. why is why nodes that fit have no pod.
func (w *workload) nodes(found placement, why string) {
	if len(found.without) > 0 {
		w.add(Step{
			Title: "Nodes", Verdict: Waiting, Text: fmt.Sprintf(
				"%d of %d nodes that fit have no pod: %s", len(found.without), found.fits, text.List(found.without, text.MaxNames),
			),
			Evidence: []string{why}, Next: w.describe(),
		})
	} else {
		w.add(Step{Title: "Nodes", Verdict: OK, Text: fmt.Sprintf("%[1]d of %[1]d nodes that fit have a pod", found.fits)})
	}
	if len(found.leaving) > 0 {
		w.add(Step{
			Title: "Nodes that do not fit", Verdict: Waiting, Text: fmt.Sprintf("the pods of %d nodes are deleted", len(found.leaving)),
			Evidence: bounded(found.leaving), Next: w.describe(),
		})
	}
	var lines []string
	count := 0
	for _, reason := range slices.Sorted(maps.Keys(found.misfits)) {
		lines = append(lines, fmt.Sprintf("%s: %s", reason, text.List(found.misfits[reason], text.MaxNames)))
		count += len(found.misfits[reason])
	}
	if count > 0 {
		w.add(Step{Title: "Nodes that do not fit", Verdict: Info, Text: fmt.Sprintf("%d nodes get no pod", count), Evidence: bounded(lines)})
	}
}

// maxLines is the maximum number of lines of evidence about nodes, pods or events.
const maxLines = 10

// bounded returns the first lines, and how many more there are.
func bounded(lines []string) []string {
	if len(lines) <= maxLines {
		return lines
	}
	return append(slices.Clone(lines[:maxLines]), fmt.Sprintf("and %d more", len(lines)-maxLines))
}

// podsOf adds the step about pods that are not available.
func (w *workload) podsOf() {
	if !w.unreadPods() {
		w.unfinished(w.stateOf, "are available")
	}
}

// unreadPods adds a step if the pods could not be read, and reports whether it did.
func (w *workload) unreadPods() bool {
	return w.unread(permission.Pods, "Pods", "the pods of the namespace")
}

// unfinished adds the step about pods that are not as they should be. state says what a pod waits for, and whether
// something is wrong; nothing if it is as it should be.
func (w *workload) unfinished(state func(*corev1.Pod) (string, bool), done string) {
	w.add(w.unfinishedOf(w.pods, len(w.pods), state, done))
}

// unfinishedOf returns the step about the pods that are not as they should be. All of them are total, which may be more than exist.
func (w *workload) unfinishedOf(pods []*corev1.Pod, total int, state func(*corev1.Pod) (string, bool), done string) Step {
	var wrong, waiting []string
	var next string
	for _, pod := range pods {
		why, isWrong := state(pod)
		if why == "" {
			continue
		}
		line := fmt.Sprintf("pod %s: %s", pod.Name, why)
		if node := nodefit.Target(pod); node != "" {
			line = fmt.Sprintf("node %s, %s", node, line)
		}
		if next == "" || isWrong && len(wrong) == 0 {
			next = inspect(pod.Namespace, pod)
		}
		if isWrong {
			wrong = append(wrong, line)
		} else {
			waiting = append(waiting, line)
		}
	}
	bad := len(wrong) + len(waiting)
	step := Step{Title: "Pods", Verdict: OK, Text: fmt.Sprintf("%d of %d %s", len(pods)-bad, total, done)}
	if bad > 0 {
		step.Verdict, step.Next = Waiting, next
	}
	if len(wrong) > 0 {
		step.Verdict = Problem
		step.Text += ", and " + wrong[0]
	}
	step.Evidence = bounded(append(wrong, waiting...))
	return step
}

// stateOf returns what a pod waits for before it is available, and whether it needs attention. It returns nothing for a pod that
// is available.
func (w *workload) stateOf(pod *corev1.Pod) (why string, wrong bool) {
	rules := rollout.Rules{Now: w.in.Now}
	if w.set != nil {
		rules = w.set.Rules
	}
	wait := rollout.WaitOf(pod, rules)
	return wait.Why, wait.Wrong
}
