// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// loss is the deletion or change of a ProbeReport by another client than its agent. It is remembered
// until the agent is asked to restore its ProbeReports.
type loss struct {
	// value identifies the loss, for the agent.
	value string
	// version is the resource version of the deletion or change.
	version string
	// pods are those that were deleted or removed. The loss matters if one of them is planned. A
	// change always matters, and has none.
	pods []seamarkv1alpha1.PodReport
}

// matters reports whether the agent can restore something.
func (l loss) matters(npp *v1alpha1.NodePodProbe) bool { return l.pods == nil || plansAny(npp, l.pods) }

func deletion(slice *seamarkv1alpha1.ProbeReport) loss {
	return loss{value: slice.Name + "/" + string(slice.UID), version: slice.ResourceVersion, pods: slice.Pods}
}

// change returns the loss of a ProbeReport that another client changed.
func change(slice *seamarkv1alpha1.ProbeReport) loss {
	return loss{value: slice.Name + "/" + slice.ResourceVersion, version: slice.ResourceVersion}
}

// removal returns the loss of a ProbeReport from which another client removed the pods. A removed
// field has no owner, but agents write no ProbeReport without pods.
func removal(before, after *seamarkv1alpha1.ProbeReport) loss {
	lost := change(after)
	lost.pods = before.Pods
	return lost
}

// unreported returns the loss of unknown ProbeReports with the pods. No earlier loss has the version of the NodePodProbe.
func unreported(npp *v1alpha1.NodePodProbe, pods []seamarkv1alpha1.PodReport) loss {
	return loss{value: "unreported/" + npp.ResourceVersion, version: npp.ResourceVersion, pods: pods}
}

// join returns the last of both losses, with the pods of both: agents restore all of their
// ProbeReports at once. The value is that of the latest loss, so the order of the initial events does
// not matter.
func (l loss) join(other loss) loss {
	if l.value == "" {
		return other
	}
	latest := other
	if order, err := resourceversion.CompareResourceVersion(other.version, l.version); err == nil && order < 0 {
		latest = l
	}
	latest.pods = nil
	if l.pods != nil && other.pods != nil {
		latest.pods = slices.Concat(l.pods, other.pods)
	}
	return latest
}

func plansAny(npp *v1alpha1.NodePodProbe, pods []seamarkv1alpha1.PodReport) bool {
	reported := sets.New[string]()
	for i := range pods {
		reported.Insert(pods[i].UID)
	}
	return slices.ContainsFunc(npp.Spec.PodProbes, func(pod v1alpha1.PodProbe) bool { return reported.Has(pod.UID) })
}
