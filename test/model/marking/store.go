// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/model/apiserver"
)

// kind is a kind of objects on the simulated API server.
type kind int

const (
	nodes kind = iota
	pods
	markers
	plans
	slicesOfPlans
	reports
	kindCount
)

// Resource returns the resource of the kind.
func (k kind) Resource() schema.GroupResource {
	return schema.GroupResource{Resource: [...]string{"nodes", "pods", "podprobemarkers", "nodepodprobes", "probeplans", "probereports"}[k]}
}

func (k kind) String() string { return k.Resource().Resource }

// kindOf returns the kind of an object. Nodes may have their metadata only.
func kindOf(object any) kind {
	switch object.(type) {
	case *corev1.Node, *metav1.PartialObjectMetadata:
		return nodes
	case *corev1.Pod, *corev1.PodList:
		return pods
	case *v1alpha1.PodProbeMarker, *v1alpha1.PodProbeMarkerList:
		return markers
	case *v1alpha1.NodePodProbe, *v1alpha1.NodePodProbeList:
		return plans
	case *seamarkv1alpha1.ProbePlan:
		return slicesOfPlans
	case *seamarkv1alpha1.ProbeReport:
		return reports
	default:
		panic(fmt.Sprintf("unexpected %T", object))
	}
}

// server is the API server, and who owns which fields of pods.
type server struct {
	*apiserver.Server[kind]
	// owners are the fields of pods by field manager: see apply.go.
	owners map[types.UID]map[string]map[field]bool
}

func newServer() *server {
	return &server{Server: apiserver.New(kindCount, time.Now, specChanged), owners: map[types.UID]map[string]map[field]bool{}}
}

type (
	event         = apiserver.Event
	preconditions = apiserver.Preconditions
)

// specChanged reports whether a change increases the generation.
func specChanged(before, after client.Object) bool {
	if (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) {
		return true
	}
	switch after := after.(type) {
	case *v1alpha1.PodProbeMarker:
		return !equality.Semantic.DeepEqual(before.(*v1alpha1.PodProbeMarker).Spec, after.Spec) //nolint:forcetypeassert // same kind
	case *v1alpha1.NodePodProbe:
		return !equality.Semantic.DeepEqual(before.(*v1alpha1.NodePodProbe).Spec, after.Spec) //nolint:forcetypeassert // same kind
	case *seamarkv1alpha1.ProbePlan:
		return !equality.Semantic.DeepEqual(before.(*seamarkv1alpha1.ProbePlan).Pods, after.Pods) //nolint:forcetypeassert // same kind
	case *seamarkv1alpha1.ProbeReport:
		return !equality.Semantic.DeepEqual(before.(*seamarkv1alpha1.ProbeReport).Pods, after.Pods) //nolint:forcetypeassert // same kind
	default:
		return false
	}
}

// collect removes the objects whose Node is gone, as the garbage collector does.
func (s *server) collect() {
	alive := map[types.UID]bool{}
	for _, node := range s.List(nodes) {
		alive[node.GetUID()] = true
	}
	for _, k := range []kind{plans, slicesOfPlans, reports} {
		for _, o := range s.List(k) {
			if owners := o.GetOwnerReferences(); len(owners) > 0 && !alive[owners[0].UID] {
				s.Remove("gc", k, client.ObjectKeyFromObject(o))
			}
		}
	}
}

func clone[T client.Object](o T) T { return apiserver.Clone(o) }
