// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/serverless"
	"github.com/seamark-dev/seamark/internal/text"
	"github.com/seamark-dev/seamark/internal/view"
)

// Reasons of the condition MarksRemoved.
const (
	// reasonRemaining means that pods or plans have not been written yet.
	reasonRemaining = "Remaining"
	// reasonWriteFailed means that the API server refuses the write of a pod or plan.
	reasonWriteFailed = "WriteFailed"
)

// maxRefusal is the maximum number of bytes of the API server's error in the status.
const maxRefusal = 400

// remains is what a pod has of a marker.
type remains struct {
	// marks are the keys of the marker that Seamark still has to remove or to change.
	marks []mark.Key
	// handedOver is whether an annotation passes the marker's probes to a provider.
	handedOver bool
}

func (r remains) any() bool { return len(r.marks) > 0 || r.handedOver }

// remainsOf returns what the pod has of the marker that is being deleted and declares the keys.
// Keys of other markers do not matter, even if they have no marker or a wrong value.
func remainsOf(v view.Pod, marker string, keys sets.Set[mark.Key]) (remains, error) {
	owned, err := mark.Owned(v.Object)
	if err != nil {
		return remains{}, err
	}
	found := remains{handedOver: serverless.Of(v.Object).Names(marker)}
	own := owned.Only(keys)
	desired := v.Desired(owned)
	for _, key := range own.Keys() {
		only := sets.New(key)
		if !own.Only(only).Equal(desired.Only(only)) {
			found.marks = append(found.marks, key)
		}
	}
	return found, nil
}

// podRemains returns what the pod has of the marker. Nil is no pod. An ending pod keeps its
// marks. The cache keeps annotations for providers only if support for pods on virtual nodes is
// enabled.
func (r *Reconciler) podRemains(ctx context.Context, marker *v1alpha1.PodProbeMarker, pod *corev1.Pod, markers []*plan.Marker) (remains, error) {
	if pod == nil || plan.Ending(pod) {
		return remains{}, nil
	}
	if mark.Entry(pod.ManagedFields) == nil {
		return remains{handedOver: serverless.Of(pod).Names(marker.Name)}, nil
	}
	v, err := r.Reader.Pod(ctx, pod, markers)
	if err != nil {
		return remains{}, err
	}
	return remainsOf(v, marker.Name, declared(marker))
}

// blocked returns the condition of a marker whose deletion has not made progress for the given
// time.
func (r *Reconciler) blocked(ctx context.Context, marker *v1alpha1.PodProbeMarker, left sets.Set[types.NamespacedName], stalled time.Duration) (finding, error) {
	b := blockage{namespace: marker.Namespace, marker: marker.Name, advise: stalled >= adviceDelay}
	for object := range left {
		refusal := r.Refusals.Of(object)
		if isNode(object) {
			b.nodes = b.nodes.with(object.Name, refusal)
		} else {
			b.pods = b.pods.with(object.Name, refusal)
		}
	}
	if b.pods.count > 0 && b.advise {
		pod, err := r.Reader.LivePod(ctx, types.NamespacedName{Namespace: marker.Namespace, Name: b.pods.example})
		if err != nil {
			return finding{}, err
		}
		markers, err := r.Reader.Markers(ctx, marker.Namespace)
		if err != nil {
			return finding{}, err
		}
		found, err := r.podRemains(ctx, marker, pod, markers)
		if err != nil {
			return finding{}, err
		}
		b.marks = found.marks
	}
	return b.finding(), nil
}

// blockers counts the objects of one kind that block a deletion. Its example is the first by
// name, preferably of those whose last write failed.
type blockers struct {
	count            int
	example, refusal string
}

func (b blockers) with(name, refusal string) blockers {
	b.count++
	better := (refusal != "") != (b.refusal != "")
	if b.example == "" || better && refusal != "" || !better && name < b.example {
		b.example, b.refusal = name, refusal
	}
	return b
}

// blockage is what blocks the deletion of a marker.
type blockage struct {
	namespace, marker string
	pods, nodes       blockers
	// advise is whether to add how to proceed. marks are the marks of the example pod.
	advise bool
	marks  []mark.Key
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
				kind, blockers.example, strings.TrimSuffix(text.Truncate(blockers.refusal, maxRefusal), ".")))
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
	if commands := removal(b.namespace, b.pods.example, b.marks); len(commands) > 0 {
		sentences = append(sentences, "Allow seamark-manager to patch pods/status, or remove the marks yourself: "+
			strings.Join(commands, "; ")+".")
	}
	return append(sentences, fmt.Sprintf("To delete the marker without waiting: "+
		`kubectl patch podprobemarker %s -n %s --type=merge -p '{"metadata":{"finalizers":null}}'.`, b.marker, b.namespace))
}

// removal returns the commands that remove the marks from the pod.
func removal(namespace, pod string, marks []mark.Key) []string {
	arguments := map[mark.Kind][]string{}
	for _, key := range marks {
		switch key.Kind {
		case mark.KindCondition:
			arguments[key.Kind] = append(arguments[key.Kind], fmt.Sprintf(`{"type":%q,"$patch":"delete"}`, key.Name))
		case mark.KindLabel, mark.KindAnnotation:
			arguments[key.Kind] = append(arguments[key.Kind], key.Name+"-")
		}
	}
	var commands []string
	for _, kind := range slices.Sorted(maps.Keys(arguments)) {
		switch kind {
		case mark.KindCondition:
			commands = append(commands, fmt.Sprintf(`kubectl patch pod %s -n %s --subresource=status -p '{"status":{"conditions":[%s]}}'`,
				pod, namespace, strings.Join(arguments[kind], ",")))
		case mark.KindLabel:
			commands = append(commands, fmt.Sprintf("kubectl label pod %s -n %s %s", pod, namespace, strings.Join(arguments[kind], " ")))
		case mark.KindAnnotation:
			commands = append(commands, fmt.Sprintf("kubectl annotate pod %s -n %s %s", pod, namespace, strings.Join(arguments[kind], " ")))
		}
	}
	return commands
}
