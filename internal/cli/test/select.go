// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/dryrun"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// maxSkipped is the number of skipped pods that are named.
const maxSkipped = 5

// selectTrials returns the probes to run. Those that cannot run have a result already. Without
// markers, it uses that of the cluster.
func (o *Options) selectTrials(ctx context.Context, connection cluster.Connection, markers []*v1alpha1.PodProbeMarker) ([]*attempt, error) {
	var attempts []*attempt
	if len(o.Filenames) == 0 {
		// The names of the pods and the marker are in the namespace of the connection.
		markers = []*v1alpha1.PodProbeMarker{nil}
	}
	for _, m := range markers {
		found, err := o.selectOf(ctx, connection, m)
		if err != nil {
			return nil, err
		}
		attempts = append(attempts, found...)
	}
	return attempts, nil
}

// selectOf returns the probes of one marker; nil is the one in the cluster.
func (o *Options) selectOf(ctx context.Context, connection cluster.Connection, m *v1alpha1.PodProbeMarker) ([]*attempt, error) {
	query := cluster.Query{Namespace: connection.Namespace, Names: o.Pods, Whole: true}
	if m != nil {
		var err error
		if query.Namespace, err = o.namespaceOf(m, connection); err != nil {
			return nil, err
		}
		if m.Namespace = query.Namespace; len(o.Pods) == 0 {
			query.Selector, _ = metav1.LabelSelectorAsSelector(m.Spec.Selector)
		}
	}
	snapshot, err := cluster.Read(ctx, connection.Client, query)
	if err != nil {
		return nil, err
	}
	required := []permission.Resource{permission.Pods}
	if m == nil {
		required = append(required, permission.Markers)
	}
	if err := errors.Join(snapshot.Require(required...), snapshot.AbsentError(ctx, connection.Client, query.Namespace)); err != nil {
		return nil, err
	}
	if m == nil {
		selected, err := o.selectMarkers(snapshot.Markers, " in namespace "+query.Namespace)
		if err != nil {
			return nil, err
		}
		m = selected[0]
	} else if !snapshot.Has(permission.Markers) {
		fmt.Fprintf(
			o.ErrOut, "Hint: the PodProbeMarkers of namespace %s cannot be read: marks that belong to another marker are not recognized\n", query.Namespace,
		)
	}
	compiled, err := plan.Compile(m)
	if err != nil {
		return nil, fmt.Errorf("PodProbeMarker %s: %w", m.Name, err)
	}
	s := selection{o: o, marker: compiled, others: compile(snapshot.Markers)}
	return s.pods(snapshot.Pods)
}

// namespaceOf returns the namespace of a marker in a file, as kubectl does.
func (o *Options) namespaceOf(m *v1alpha1.PodProbeMarker, connection cluster.Connection) (string, error) {
	given := *o.Cluster.Namespace
	if m.Namespace != "" && given != "" && m.Namespace != given {
		return "", fmt.Errorf("--namespace: %q is invalid: the namespace of PodProbeMarker %s is %q", given, m.Name, m.Namespace)
	}
	if m.Namespace != "" {
		return m.Namespace, nil
	}
	return connection.Namespace, nil
}

// compile returns the markers that take effect.
func compile(markers []*v1alpha1.PodProbeMarker) []*plan.Marker {
	var compiled []*plan.Marker
	for _, m := range markers {
		if c, err := plan.Compile(m); err == nil {
			compiled = append(compiled, c)
		}
	}
	return compiled
}

// selection selects the probes of one marker.
type selection struct {
	o      *Options
	marker *plan.Marker
	others []*plan.Marker
}

// pods returns the probes to run in the pods.
func (s *selection) pods(candidates []*corev1.Pod) ([]*attempt, error) {
	var attempts []*attempt
	used, left, skipped := 0, 0, 0
	for _, candidate := range candidates {
		err := dryrun.Selects(s.marker, candidate)
		switch {
		case err != nil && len(s.o.Pods) > 0:
			attempts = append(attempts, refused(candidate, s.marker.Name, err.Error()))
			continue
		case err != nil && s.marker.Matches(candidate):
			if skipped++; skipped <= maxSkipped {
				fmt.Fprintf(s.o.ErrOut, "Skipped pod %s: %s\n", candidate.Name, err)
			}
			continue
		case err != nil:
			continue
		case used == s.o.Limit:
			left++
			continue
		}
		used++
		attempts = append(attempts, s.pod(candidate)...)
	}
	if skipped > maxSkipped {
		fmt.Fprintf(s.o.ErrOut, "Skipped %d more pods that are not probed\n", skipped-maxSkipped)
	}
	if left > 0 {
		fmt.Fprintf(s.o.ErrOut, "Left out %d of the %d pods that PodProbeMarker %s matches: see --limit\n", left, left+used, s.marker.Name)
	}
	if len(attempts) == 0 {
		return nil, exit.Failure(fmt.Errorf("no pod in namespace %s that PodProbeMarker %s would probe: its selector is %q",
			s.marker.Namespace, s.marker.Name, labels.NewSelector().Add(s.marker.Requirements()...)))
	}
	return attempts, nil
}

// pod returns the probes to run in the pod.
func (s *selection) pod(pod *corev1.Pod) []*attempt {
	tried, err := dryrun.New(pod, s.marker, s.others)
	if err != nil {
		return []*attempt{refused(pod, s.marker.Name, err.Error())}
	}
	var attempts []*attempt
	for i := range tried.Probes {
		if s.o.wants(tried.Probes[i].ID.Probe) {
			attempts = append(attempts, newAttempt(tried, tried.Probes[i]))
		}
	}
	for i := range tried.Problems {
		if s.o.wants(tried.Problems[i].ID.Probe) {
			a := refused(pod, s.marker.Name, diagnosis.OfProblem(tried.Problems[i]).String())
			a.Probe, a.Container = tried.Problems[i].ID.Probe, tried.Problems[i].Container
			attempts = append(attempts, a)
		}
	}
	return attempts
}
