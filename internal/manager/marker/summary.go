// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// Reasons of the conditions.
const (
	reasonResolved    = "Resolved"
	reasonExclusive   = "Exclusive"
	reasonInvalid     = "InvalidSpec"
	reasonKeyConflict = "KeyConflict"
)

// problem is a reason why a probe cannot run, in any number of pods.
type problem struct {
	probe, container, port string
	reason                 plan.Reason
}

// conflict is a key that a probe of the marker declares and another probe sets.
type conflict struct {
	key    mark.Key
	winner probeid.ID
	loser  string
}

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
	matched   int
	problems  map[problem]pods
	conflicts map[conflict]pods
}

func newSummary() *summary {
	return &summary{problems: make(map[problem]pods), conflicts: make(map[conflict]pods)}
}

// addShortages adds the probes that the plans of nodes leave out.
func (s *summary) addShortages(shortages []plan.Shortage) {
	for _, short := range shortages {
		key := problem{probe: short.ID.Probe, reason: plan.NodePlanFull}
		p := s.problems[key].with(short.Example)
		p.count += short.Pods - 1
		s.problems[key] = p
	}
}

// findings returns the marker's conditions. Their messages follow the order of its probes.
func (s *summary) findings(marker *v1alpha1.PodProbeMarker) []finding {
	order := make(map[string]int, len(marker.Spec.Probes))
	for i := range marker.Spec.Probes {
		order[marker.Spec.Probes[i].Name] = i
	}
	return []finding{s.resolved(order), s.exclusive(order)}
}

func (s *summary) resolved(order map[string]int) finding {
	if len(s.problems) == 0 {
		return fine(v1alpha1.ConditionProbesResolved, reasonResolved, "All probes can run in all matched pods.")
	}
	problems := slices.SortedFunc(maps.Keys(s.problems), func(a, b problem) int {
		return cmp.Or(order[a.probe]-order[b.probe], strings.Compare(string(a.reason), string(b.reason)))
	})
	return wrong(v1alpha1.ConditionProbesResolved, string(problems[0].reason),
		fmt.Sprint(problems), message(problems, s.problems, s.matched))
}

func (s *summary) exclusive(order map[string]int) finding {
	if len(s.conflicts) == 0 {
		return fine(v1alpha1.ConditionMarksExclusive, reasonExclusive, "No conflicting marks.")
	}
	conflicts := slices.SortedFunc(maps.Keys(s.conflicts), func(a, b conflict) int {
		return cmp.Or(order[a.loser]-order[b.loser], strings.Compare(a.key.String(), b.key.String()),
			strings.Compare(a.winner.String(), b.winner.String()))
	})
	return wrong(v1alpha1.ConditionMarksExclusive, reasonKeyConflict,
		fmt.Sprint(conflicts), message(conflicts, s.conflicts, s.matched))
}

// invalid returns the condition of a marker that does not compile.
func invalid(err error) finding {
	return wrong(v1alpha1.ConditionProbesResolved, reasonInvalid, err.Error(), err.Error())
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

// message lists as many of the problems or conflicts as fit, with the pods that have them.
func message[T interface {
	comparable
	fmt.Stringer
}](all []T, affected map[T]pods, matched int) string {
	const room = len(" And 1000000 more.")
	var text strings.Builder
	for i, each := range all {
		p := affected[each]
		example := p.example
		if p.detail != "" {
			example += ": " + p.detail
		}
		sentence := fmt.Sprintf("%s (%d of %d matched pods, such as %s).", each, p.count, matched, example)
		if text.Len()+1+len(sentence)+room > maxMessage {
			fmt.Fprintf(&text, " And %d more.", len(all)-i)
			break
		}
		if i > 0 {
			text.WriteString(" ")
		}
		text.WriteString(sentence)
	}
	return text.String()
}

// String describes the problem without the affected pods.
func (p problem) String() string {
	return diagnosis.ProblemText(plan.Problem{
		ID: probeid.ID{Probe: p.probe}, Container: p.container, Port: p.port, Reason: p.reason,
	})
}

// String describes the conflict without the affected pods.
func (c conflict) String() string {
	return diagnosis.ConflictText(mark.Conflict{Key: c.key, Winner: c.winner, Loser: probeid.ID{Probe: c.loser}})
}
