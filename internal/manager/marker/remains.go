// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Reasons of the condition MarksRemoved.
const (
	// reasonRemaining means that pods or plans have not been written yet.
	reasonRemaining = "Remaining"
	// reasonWriteFailed means that the API server refuses the write of a pod or plan.
	reasonWriteFailed = "WriteFailed"
)

// remains are what the plans and pods of a namespace have of markers that are being deleted.
type remains struct {
	// blockages has what blocks the deletion, by the name of the marker.
	blockages map[string]*blockage
	// objects are all pods and plans that have something. Plans have the name of the node only.
	objects sets.Set[types.NamespacedName]
	// declares has the markers that declare a key.
	declares map[mark.Key]sets.Set[string]
}

func newRemains(namespace string, markers ...*v1alpha1.PodProbeMarker) remains {
	found := remains{
		blockages: make(map[string]*blockage, len(markers)), objects: sets.New[types.NamespacedName](), declares: make(map[mark.Key]sets.Set[string]),
	}
	for _, marker := range markers {
		found.blockages[marker.Name] = &blockage{namespace: namespace, marker: marker.Name}
		for i := range marker.Spec.Probes {
			for _, key := range mark.Declared(&marker.Spec.Probes[i]) {
				if found.declares[key] == nil {
					found.declares[key] = sets.New[string]()
				}
				found.declares[key].Insert(marker.Name)
			}
		}
	}
	return found
}

// findRemains looks for what plans and pods have of the markers that are being deleted. It reads each
// plan and pod once, whatever the number of markers.
func (r *Reconciler) findRemains(ctx context.Context, all []*v1alpha1.PodProbeMarker, tasks []task) (remains, error) {
	namespace := tasks[0].marker.Namespace
	deleted := make([]*v1alpha1.PodProbeMarker, 0, len(tasks))
	for _, t := range tasks {
		deleted = append(deleted, t.marker)
	}
	found := newRemains(namespace, deleted...)
	nodes, err := r.Reader.Planned(ctx, deleted...)
	if err != nil {
		return found, err
	}
	for node := range nodes {
		// A stored plan may have pods that are gone.
		whole, err := r.Reader.NodePlan(ctx, node)
		if err != nil {
			return found, err
		}
		if whole != nil {
			found.addNode(node, plan.Markers(whole.Spec.PodProbes, namespace), r.Refusals.Reason(types.NamespacedName{Name: node}))
		}
	}
	// They include the deleted markers, which select nothing.
	markers := plan.Sorted(r.Reader.Compiler.All(all))
	pods, err := r.Reader.NamespacePods(ctx, namespace)
	if err != nil {
		return found, err
	}
	for _, pod := range pods {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		view := func() (podview.Pod, error) {
			v, err := r.Reader.Pod(ctx, pod, markers)
			if err != nil {
				return v, err
			}
			return v.WithTickets(markers), nil
		}
		if err := found.addPod(pod, view, r.Refusals.Reason(client.ObjectKeyFromObject(pod))); err != nil {
			return found, err
		}
	}
	return found, nil
}

// addNode adds the plan of a node that has probes of the markers.
func (f remains) addNode(node string, markers sets.Set[string], refusal string) {
	for marker := range markers {
		if blocked := f.blockages[marker]; blocked != nil {
			blocked.nodes = blocked.nodes.with(node, refusal, nil)
			f.objects.Insert(types.NamespacedName{Name: node})
		}
	}
}

// addPod adds the pod to the markers that it has something of: marks that Seamark still has to remove
// or to change, or an annotation that passes probes to a provider. Keys of other markers do not
// matter, even if they have no marker or a wrong value. An ending pod keeps its marks. The cache keeps
// annotations for providers only if support for pods on virtual nodes is enabled. It calls viewOf only
// if the pod has keys that the markers declare.
func (f remains) addPod(pod *corev1.Pod, viewOf func() (podview.Pod, error), refusal string) error {
	if plan.Ending(pod) {
		return nil
	}
	left := make(map[string][]mark.Key)
	for _, marker := range serverless.AnnotationsOf(pod).Names() {
		left[marker] = nil
	}
	owned, err := mark.Owned(pod)
	if err != nil {
		return err
	}
	own := maps.Clone(owned)
	maps.DeleteFunc(own, func(key mark.Key, _ mark.Value) bool { return len(f.declares[key]) == 0 })
	if len(own) > 0 {
		v, err := viewOf()
		if err != nil {
			return err
		}
		desired := v.Desired(owned)
		for _, key := range own.Keys() {
			if only := sets.New(key); !own.Only(only).Equal(desired.Only(only)) {
				for marker := range f.declares[key] {
					left[marker] = append(left[marker], key)
				}
			}
		}
	}
	for marker, keys := range left {
		if blocked := f.blockages[marker]; blocked != nil {
			blocked.pods = blocked.pods.with(pod.Name, refusal, keys)
			f.objects.Insert(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	return nil
}

// blockers counts the objects of one kind that block a deletion. Its example is the first by
// name, preferably of those whose last write failed, with the marks that it still has.
type blockers struct {
	count            int
	example, refusal string
	marks            []mark.Key
}

func (b blockers) with(name, refusal string, marks []mark.Key) blockers {
	b.count++
	better := (refusal != "") != (b.refusal != "")
	if b.example == "" || better && refusal != "" || !better && name < b.example {
		b.example, b.refusal, b.marks = name, refusal, marks
	}
	return b
}

// blockage is what blocks the deletion of a marker.
type blockage struct {
	namespace, marker string
	pods, nodes       blockers
	// advise is whether to add how to proceed.
	advise bool
}

// finding returns the condition MarksRemoved. Its cause changes when the advice is added, so that
// an event reports it.
func (b blockage) finding() finding {
	var sentences []string
	reason := reasonRemaining
	add := func(blockers blockers, format, kind string) {
		if blockers.count == 0 {
			return
		}
		sentences = append(sentences, fmt.Sprintf(format, blockers.count, blockers.example))
		if blockers.refusal != "" {
			reason = reasonWriteFailed
			sentences = append(sentences, fmt.Sprintf("The last write to %s %s failed: %s.",
				kind, blockers.example, strings.TrimSuffix(blockers.refusal, ".")))
		}
	}
	add(b.pods, "Pods still have marks of the marker (%d, such as %s).", "pod")
	add(b.nodes, "Plans of nodes still have probes of the marker (%d, such as %s).", "the plan of node")
	if b.advise {
		sentences = append(sentences, b.advice()...)
	}
	return wrong(v1alpha1.ConditionMarksRemoved, reason, fmt.Sprint(reason, b.advise),
		text.Truncate(strings.Join(sentences, " "), maxMessage))
}

// advice says how to proceed with a deletion that makes no progress.
func (b blockage) advice() []string {
	sentences := []string{fmt.Sprintf("No progress for more than %s.", adviceDelay)}
	if commands := removal(b.namespace, b.pods.example, b.pods.marks); len(commands) > 0 {
		sentences = append(sentences, "Allow seamark-manager to patch pods/status, or remove the marks yourself: "+
			strings.Join(commands, "; ")+".")
	}
	return append(sentences, fmt.Sprintf("To delete the marker without waiting: "+
		`kubectl patch podprobemarker %s -n %s --type=merge -p '{"metadata":{"finalizers":null}}'.`, b.marker, b.namespace))
}

// removal returns the commands that remove the marks from the pod.
func removal(namespace, pod string, marks []mark.Key) (commands []string) {
	verbs := map[mark.Kind]string{mark.KindLabel: "label", mark.KindAnnotation: "annotate"}
	arguments := map[mark.Kind][]string{}
	for _, key := range marks {
		argument := key.Name + "-"
		if key.Kind == mark.KindCondition {
			argument = fmt.Sprintf(`{"type":%q,"$patch":"delete"}`, key.Name)
		}
		arguments[key.Kind] = append(arguments[key.Kind], argument)
	}
	for _, kind := range slices.Sorted(maps.Keys(arguments)) {
		command := fmt.Sprintf("kubectl %s pod %s -n %s %s", verbs[kind], pod, namespace, strings.Join(arguments[kind], " "))
		if kind == mark.KindCondition {
			command = fmt.Sprintf(`kubectl patch pod %s -n %s --subresource=status -p '{"status":{"conditions":[%s]}}'`,
				pod, namespace, strings.Join(arguments[kind], ","))
		}
		commands = append(commands, command)
	}
	return commands
}
