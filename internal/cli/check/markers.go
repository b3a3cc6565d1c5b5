// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
)

// maxMarkers is the maximum number of markers with problems that have a result of their own.
const maxMarkers = 10

// markers checks that the manager has processed each marker and reports no problem.
func (f *Facts) markers() []Result {
	const name = "markers"
	if f.Markers.Err != nil {
		return []Result{unreadable(name, f.Markers.Err)}
	}
	var results []Result
	var outdated []string
	more := 0
	for i := range f.Markers.Value {
		m := &f.Markers.Value[i]
		full := m.Namespace + "/" + m.Name
		if m.Status.ObservedGeneration < m.Generation && f.Now.Sub(view.Edited(m)) >= diagnosis.Settle {
			outdated = append(outdated, full)
			continue
		}
		j := slices.IndexFunc(m.Status.Conditions, func(c metav1.Condition) bool { return c.Status == metav1.ConditionFalse })
		if j < 0 {
			continue
		}
		if len(results) == maxMarkers {
			more++
			continue
		}
		problem := m.Status.Conditions[j]
		results = append(results, Result{
			Check: "marker/" + full, Verdict: Warning,
			Evidence: fmt.Sprintf("%s is False: %s: %s", problem.Type, problem.Reason, oneLine(problem.Message)),
			Fix:      fmt.Sprintf("kubectl -n %s describe podprobemarker %s", m.Namespace, m.Name),
		})
	}
	if more > 0 {
		results = append(results, Result{
			Check: name, Verdict: Warning, Evidence: count(more, "more marker") + " with problems",
			Fix: "kubectl get podprobemarkers --all-namespaces",
		})
	}
	if len(outdated) > 0 {
		results = append(results, Result{
			Check: name, Verdict: Failed,
			Evidence: fmt.Sprintf("the manager has not processed %s: %s", count(len(outdated), "marker"), names(outdated)),
			Fix:      fmt.Sprintf("kubectl -n %s logs -l %s=manager --tail=50", f.Namespace, componentLabel),
		})
	}
	if len(results) == 0 {
		results = append(results, ok(name, "%s without problems", count(len(f.Markers.Value), "marker")))
	}
	return results
}

// oneLine replaces line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
