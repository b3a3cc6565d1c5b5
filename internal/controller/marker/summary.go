// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/serverless"
)

// The reasons of the conditions.
const (
	reasonResolved    = "Resolved"
	reasonExclusive   = "Exclusive"
	reasonInvalid     = "InvalidSpec"
	reasonKeyConflict = "KeyConflict"
)

// problem is a probe that is left out, whatever the pod.
type problem struct {
	probe, container, port string
	reason                 plan.Reason
}

// conflict is a key of one of the marker's probes that another probe sets.
type conflict struct {
	key    mark.Key
	winner probeid.ID
	loser  string
}

// pods counts the pods that something holds for, and names the first of them.
type pods struct {
	count   int
	example string
}

func (p pods) with(name string) pods {
	if p.count == 0 || name < p.example {
		p.example = name
	}
	p.count++
	return p
}

// summary is what the pods of one marker make of it.
type summary struct {
	matched   int
	problems  map[problem]pods
	conflicts map[conflict]pods
}

// summarize looks at the namespace's pods that the marker selects. Each is planned with the
// compiled markers that may set keys which the marker declares, itself among them.
func summarize(marker *plan.Marker, selected []corev1.Pod, planPod func(*corev1.Pod) (plan.PodPlan, error)) (summary, error) {
	s := summary{problems: make(map[problem]pods), conflicts: make(map[conflict]pods)}
	for i := range selected {
		pod := &selected[i]
		if !plan.Eligible(pod) || !marker.Selects(pod) {
			continue
		}
		s.matched++
		planned, err := planPod(pod)
		if err != nil {
			return s, err
		}
		for _, p := range planned.Problems {
			if p.ID.Marker == marker.Name {
				key := problem{probe: p.ID.Probe, container: p.Container, port: p.Port, reason: p.Reason}
				s.problems[key] = s.problems[key].with(pod.Name)
			}
		}
		_, conflicts := mark.Claim(planned.Probes)
		for _, c := range conflicts {
			if c.Loser.Marker == marker.Name {
				key := conflict{key: c.Key, winner: c.Winner, loser: c.Loser.Probe}
				s.conflicts[key] = s.conflicts[key].with(pod.Name)
			}
		}
	}
	return s, nil
}

// rivals returns those of the markers that declare a key which the marker declares too.
func rivals(marker *v1alpha1.PodProbeMarker, all []v1alpha1.PodProbeMarker) []v1alpha1.PodProbeMarker {
	mine := declared(marker)
	return slices.DeleteFunc(slices.Clone(all), func(other v1alpha1.PodProbeMarker) bool {
		if other.Name == marker.Name {
			return false
		}
		return !mine.HasAny(declared(&other).UnsortedList()...)
	})
}

func declared(marker *v1alpha1.PodProbeMarker) sets.Set[mark.Key] {
	keys := sets.New[mark.Key]()
	for i := range marker.Spec.Probes {
		keys.Insert(mark.Declared(&marker.Spec.Probes[i])...)
	}
	return keys
}

// conditions says in words what is wrong, in the order of the marker's probes.
func (s summary) conditions(marker *v1alpha1.PodProbeMarker) []metav1.Condition {
	order := make(map[string]int, len(marker.Spec.Probes))
	for i := range marker.Spec.Probes {
		order[marker.Spec.Probes[i].Name] = i
	}
	return []metav1.Condition{s.resolved(order), s.exclusive(order)}
}

func (s summary) resolved(order map[string]int) metav1.Condition {
	problems := make([]problem, 0, len(s.problems))
	for p := range s.problems {
		problems = append(problems, p)
	}
	if len(problems) == 0 {
		return metav1.Condition{
			Type: v1alpha1.ConditionProbesResolved, Status: metav1.ConditionTrue, Reason: reasonResolved,
			Message: "every probe can run in every matched pod",
		}
	}
	slices.SortFunc(problems, func(a, b problem) int {
		return cmp.Or(order[a.probe]-order[b.probe], strings.Compare(string(a.reason), string(b.reason)))
	})
	sentences := make([]string, 0, len(problems))
	for _, p := range problems {
		sentences = append(sentences, fmt.Sprintf("%s (%s)", p, s.share(s.problems[p])))
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionProbesResolved, Status: metav1.ConditionFalse, Reason: string(problems[0].reason),
		Message: joined(sentences),
	}
}

func (s summary) exclusive(order map[string]int) metav1.Condition {
	conflicts := make([]conflict, 0, len(s.conflicts))
	for c := range s.conflicts {
		conflicts = append(conflicts, c)
	}
	if len(conflicts) == 0 {
		return metav1.Condition{
			Type: v1alpha1.ConditionMarksExclusive, Status: metav1.ConditionTrue, Reason: reasonExclusive,
			Message: "no other probe comes before these with a mark that they declare",
		}
	}
	slices.SortFunc(conflicts, func(a, b conflict) int {
		return cmp.Or(order[a.loser]-order[b.loser], strings.Compare(a.key.String(), b.key.String()),
			strings.Compare(a.winner.String(), b.winner.String()))
	})
	sentences := make([]string, 0, len(conflicts))
	for _, c := range conflicts {
		sentences = append(sentences, fmt.Sprintf("%s (%s)", c, s.share(s.conflicts[c])))
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionMarksExclusive, Status: metav1.ConditionFalse, Reason: reasonKeyConflict,
		Message: joined(sentences),
	}
}

// maxMessage is the most characters that the API server takes of a condition's message.
const maxMessage = 32768

// joined makes one message of as many of the sentences as it may hold.
func joined(sentences []string) string {
	const room = len("; and 1000000 more")
	var message strings.Builder
	for i, sentence := range sentences {
		if message.Len()+len("; ")+len(sentence)+room > maxMessage {
			fmt.Fprintf(&message, "; and %d more", len(sentences)-i)
			break
		}
		if i > 0 {
			message.WriteString("; ")
		}
		message.WriteString(sentence)
	}
	return message.String()
}

func (s summary) share(p pods) string {
	return fmt.Sprintf("%d of %d matched pods, such as %s", p.count, s.matched, p.example)
}

// String says what is wrong without naming pods.
func (p problem) String() string {
	switch p.reason {
	case plan.ContainerNotFound:
		return fmt.Sprintf("probe %q: no container %q", p.probe, p.container)
	case plan.PortNotFound:
		return fmt.Sprintf("probe %q: container %q has no port %q", p.probe, p.container, p.port)
	case serverless.ConditionTypeMissing:
		return fmt.Sprintf("probe %q: needs a podConditionType for pods on virtual kubelets", p.probe)
	case serverless.ConditionTypeTaken:
		return fmt.Sprintf("probe %q: another probe before it has its podConditionType, and pods on virtual kubelets are probed for one only", p.probe)
	default:
		return fmt.Sprintf("probe %q: needs exactly one of exec, httpGet, tcpSocket and grpc", p.probe)
	}
}

// String says what is wrong without naming pods.
func (c conflict) String() string {
	return fmt.Sprintf("probe %q: the %s %q is set by probe %q of marker %q",
		c.loser, c.key.Kind, c.key.Name, c.winner.Probe, c.winner.Marker)
}

// invalid is the condition of a marker that can't be followed at all.
func invalid(err error) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionProbesResolved, Status: metav1.ConditionFalse, Reason: reasonInvalid,
		Message: err.Error(),
	}
}
