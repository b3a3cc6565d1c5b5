// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// MaxErrorBytes is the maximum number of bytes of the message of a reported error.
const MaxErrorBytes = 256

// Errors returns the errors that are reported for the probes of the pod with the UID, in the entry
// whose states take effect. A reason that is unknown, such as that of a later agent, is
// ProbeCannotRun, and longer messages are truncated: whoever can write reports writes neither the
// reasons nor the text of conditions.
func (r NodeReport) Errors(pod types.UID) []v1alpha1.ContainerProbeError {
	found, _ := r.entry(pod)
	if len(found.errors) == 0 {
		return nil
	}
	errs := slices.Clone(found.errors)
	for i := range errs {
		errs[i] = Known(errs[i])
	}
	return errs
}

// Known returns the error with a known reason, and with valid text of at most MaxErrorBytes.
func Known(e v1alpha1.ContainerProbeError) v1alpha1.ContainerProbeError {
	if !slices.Contains(v1alpha1.ProbeErrorReasons(), e.Reason) {
		e.Reason = v1alpha1.ProbeCannotRun
	}
	e.Message = text.Truncate(e.Message, MaxErrorBytes)
	return e
}

// ChangedErrors returns the markers whose errors differ between two versions of one object, each
// once and ordered by namespace and name.
func ChangedErrors(before, after []seamarkv1alpha1.PodReport) []types.NamespacedName {
	type key struct{ namespace, uid, probe string }
	old := make(map[key]v1alpha1.ContainerProbeError)
	for i := range before {
		for _, e := range before[i].Errors {
			old[key{before[i].Namespace, before[i].UID, e.Name}] = e
		}
	}
	changed := make(map[types.NamespacedName]bool)
	add := func(namespace, probe string) {
		if id, err := probeid.Parse(probe); err == nil {
			changed[types.NamespacedName{Namespace: namespace, Name: id.Marker}] = true
		}
	}
	for i := range after {
		for _, e := range after[i].Errors {
			k := key{after[i].Namespace, after[i].UID, e.Name}
			if previous, known := old[k]; !known || previous != e {
				add(k.namespace, k.probe)
			}
			delete(old, k)
		}
	}
	for k := range old {
		add(k.namespace, k.probe)
	}
	markers := make([]types.NamespacedName, 0, len(changed))
	for marker := range changed {
		markers = append(markers, marker)
	}
	slices.SortFunc(markers, func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return markers
}
