// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Reasons of the conditions.
const (
	reasonResolved    = "Resolved"
	reasonExclusive   = "Exclusive"
	reasonInvalid     = "InvalidSpec"
	reasonKeyConflict = "KeyConflict"
	reasonAnnotation  = "InvalidAnnotation"
	reasonNoPods      = "NoPods"
)

// pods counts the affected pods and has the name of the first, and what it reports.
type pods struct {
	count           int
	example, detail string
}

func (p pods) with(name string) pods { return p.reporting(name, "") }

func (p pods) reporting(name, detail string) pods {
	if p.count == 0 || name < p.example {
		p.example, p.detail = name, detail
	}
	p.count++
	return p
}

// summary has the problems of one marker in its pods.
type summary struct {
	matched int
	// problems have neither a pod nor what differs between pods.
	problems  map[plan.Problem]pods
	conflicts map[mark.Conflict]pods
}

func newSummary() *summary {
	return &summary{problems: make(map[plan.Problem]pods), conflicts: make(map[mark.Conflict]pods)}
}

// findings returns the marker's conditions. Their messages follow the order of its probes.
func (s *summary) findings(marker *v1alpha1.PodProbeMarker) []finding {
	order := make(map[string]int, len(marker.Spec.Probes))
	for i := range marker.Spec.Probes {
		order[marker.Spec.Probes[i].Name] = i
	}
	findings := []finding{withAnnotations(s.resolved(order), marker), s.exclusive(order)}
	if s.matched == 0 {
		findings = append(findings, unmatched())
	}
	return findings
}

// withAnnotations returns the condition with the annotation of the marker that has an invalid value, if
// there is one. The probes run nevertheless.
func withAnnotations(resolved finding, marker *v1alpha1.PodProbeMarker) finding {
	err := plan.CheckAnnotations(marker)
	if err == nil {
		return resolved
	}
	sentence := "Annotation " + v1alpha1.MessageUpdatesAnnotationKey + ": " + err.Error() + "."
	if resolved.Status == metav1.ConditionTrue {
		return wrong(v1alpha1.ConditionProbesResolved, reasonAnnotation, sentence, sentence)
	}
	resolved.cause += ", " + sentence
	resolved.Message = text.Truncate(resolved.Message, maxMessage-1-len(sentence)) + " " + sentence
	return resolved
}

func (s *summary) resolved(order map[string]int) finding {
	if len(s.problems) == 0 {
		return fine(v1alpha1.ConditionProbesResolved, reasonResolved, "All probes can run in all matched pods.")
	}
	problems := slices.SortedFunc(maps.Keys(s.problems), func(a, b plan.Problem) int {
		return cmp.Or(order[a.ID.Probe]-order[b.ID.Probe], strings.Compare(string(a.Reason), string(b.Reason)))
	})
	cause, message := message(problems, diagnosis.ProblemText, s.problems, s.matched)
	return wrong(v1alpha1.ConditionProbesResolved, string(problems[0].Reason), cause, message)
}

func (s *summary) exclusive(order map[string]int) finding {
	if len(s.conflicts) == 0 {
		return fine(v1alpha1.ConditionMarksExclusive, reasonExclusive, "No conflicting marks.")
	}
	conflicts := slices.SortedFunc(maps.Keys(s.conflicts), func(a, b mark.Conflict) int {
		return cmp.Or(order[a.Loser.Probe]-order[b.Loser.Probe], strings.Compare(a.Key.String(), b.Key.String()),
			strings.Compare(a.Winner.String(), b.Winner.String()))
	})
	cause, message := message(conflicts, diagnosis.ConflictText, s.conflicts, s.matched)
	return wrong(v1alpha1.ConditionMarksExclusive, reasonKeyConflict, cause, message)
}

// invalid returns the condition of a marker that does not compile.
func invalid(err error) finding {
	reason, excluded := reasonInvalid, (*plan.ExcludedError)(nil)
	if errors.As(err, &excluded) {
		reason = string(plan.NamespaceExcluded)
	}
	return wrong(v1alpha1.ConditionProbesResolved, reason, err.Error(), err.Error())
}

// unmatched returns the condition of a marker that probes no pod. It is written together with the number of pods, and never on
// its own.
func unmatched() finding {
	const message = "The selector matches no pod that is bound to a node, initialized and not terminating."
	return wrong(v1alpha1.ConditionPodsMatched, reasonNoPods, message, message)
}

func fine(conditionType, reason, message string) finding {
	return finding{Condition: metav1.Condition{
		Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message,
	}}
}

func wrong(conditionType, reason, cause, message string) finding {
	return finding{cause: cause, Condition: metav1.Condition{
		Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message,
	}}
}

// maxMessage is the API server's limit for the message of a condition.
const maxMessage = 32768

// message lists as many of the problems or conflicts as fit, with the pods that have them. The cause has
// all of them, without the pods.
func message[T comparable](all []T, describe func(T) string, counts map[T]pods, matched int) (cause, message string) {
	const room = len(" And 1000000 more.")
	causes, sentences, size := make([]string, 0, len(all)), []string(nil), 0
	for _, each := range all {
		p, text := counts[each], describe(each)
		causes = append(causes, text)
		if p.detail != "" {
			p.example += ": " + p.detail
		}
		sentence := fmt.Sprintf("%s (%d of %d matched pods, such as %s).", text, p.count, matched, p.example)
		if size += 1 + len(sentence); size+room <= maxMessage {
			sentences = append(sentences, sentence)
		}
	}
	if more := len(all) - len(sentences); more > 0 {
		sentences = append(sentences, fmt.Sprintf("And %d more.", more))
	}
	return strings.Join(causes, ", "), strings.Join(sentences, " ")
}

// survey collects the problems of some markers of a namespace, given each of its pods once.
type survey struct{ summaries map[string]*summary }

func newSurvey(markers []*plan.Marker) survey {
	s := survey{summaries: make(map[string]*summary, len(markers))}
	for _, marker := range markers {
		s.summaries[marker.Name] = newSummary()
	}
	return s
}

// survey returns the problems of the markers by name, except of those that do not compile. It
// compiles the plan of each pod that one of them selects once, and looks only at the markers that may select the pod: with
// 1,400 markers and 150,000 pods in a namespace, all of them would take longer than a reconcile may.
func (r *Reconciler) survey(ctx context.Context, checked []*v1alpha1.PodProbeMarker) (map[string]*summary, error) {
	if len(checked) == 0 {
		return nil, nil
	}
	surveyed := r.Reader.Compiler.All(checked)
	s := newSurvey(surveyed)
	pods, err := r.podsOf(ctx, checked[0].Namespace, surveyed)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		markers, err := r.Reader.MarkersOf(ctx, pod.Namespace, pod.Labels)
		if err != nil {
			return nil, err
		}
		if !s.selects(pod, markers) {
			continue
		}
		planned, err := r.Reader.Plan(ctx, pod, plan.Sorted(markers))
		if err != nil {
			return nil, err
		}
		report, err := r.Reader.Report(ctx, pod.Spec.NodeName)
		if err != nil {
			return nil, err
		}
		s.add(pod, planned, report.Errors(pod.UID))
	}
	return s.summaries, nil
}

// fewMarkers is the number of markers up to which comparing each pod with each of them costs less than a search in the
// index for each pod (BenchmarkCheck).
const fewMarkers = 16

// podsOf returns the eligible pods of the namespace that the markers may select. If the markers are few, these are only
// those that they select: an edit of one marker does not look up the markers of all pods of a large namespace.
func (r *Reconciler) podsOf(ctx context.Context, namespace string, markers []*plan.Marker) ([]*corev1.Pod, error) {
	pods, err := r.Reader.NamespacePods(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
		return !plan.Eligible(pod) || len(markers) <= fewMarkers &&
			!slices.ContainsFunc(markers, func(m *plan.Marker) bool { return m.Selects(pod) })
	}), nil
}

// selects counts the pod for the surveyed markers that probe it, and reports whether there are any.
func (s survey) selects(pod *corev1.Pod, markers []*plan.Marker) bool {
	selected := false
	for _, marker := range markers {
		if found := s.summaries[marker.Name]; found != nil && marker.Selects(pod) {
			found.matched++
			selected = true
		}
	}
	return selected
}

// add collects the problems in the plan of a pod, which is that of all markers of the namespace, and
// the errors that the agent of the pod's own node reports.
func (s survey) add(pod *corev1.Pod, planned plan.PodPlan, errs []v1alpha1.ContainerProbeError) {
	for _, p := range planned.Problems {
		s.addProblem(plan.Problem{ID: p.ID, Container: p.Container, Port: p.Port, Reason: p.Reason}, pod.Name, "")
	}
	for _, marker := range planned.Excess.Markers {
		s.addProblem(plan.Problem{ID: identity.ID{Marker: marker.Name}, Reason: plan.TooManyMarkers}, pod.Name, planned.Excess.Counted)
	}
	s.addErrors(pod, planned, errs)
	_, conflicts := mark.Claim(planned.Probes)
	for _, c := range conflicts {
		if found := s.summaries[c.Loser.Marker]; found != nil {
			found.conflicts[c] = found.conflicts[c].with(pod.Name)
		}
	}
}

func (s survey) addErrors(pod *corev1.Pod, planned plan.PodPlan, errs []v1alpha1.ContainerProbeError) {
	if len(errs) == 0 {
		return
	}
	ids := make(map[identity.ID]bool, len(planned.Probes))
	for _, probe := range planned.Probes {
		ids[probe.ID] = true
	}
	for _, e := range errs {
		if id, err := identity.Parse(e.Name); err == nil && ids[id] {
			s.addProblem(plan.Problem{ID: id, Reason: plan.Reason(e.Reason)}, pod.Name, e.Message)
		}
	}
}

func (s survey) addProblem(p plan.Problem, pod, detail string) {
	if found := s.summaries[p.ID.Marker]; found != nil {
		found.problems[p] = found.problems[p].reporting(pod, detail)
	}
}
