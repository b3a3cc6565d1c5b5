// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
)

// daemonSet says which nodes have no pod, and which pods are not available.
func (w *workload) daemonSet(set *v1alpha1.DaemonSet) {
	if w.unreadPods() {
		return
	}
	if found, known := w.place(&set.Spec.Template.Spec, func(*nodefit.Template, *corev1.Node) string { return "" }); known {
		w.nodes(found, "the controller creates them within seconds, unless the partition also limits creation or a condition above says why it cannot")
	}
	w.unfinished(w.stateOf, "are available")
}
