// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
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

func (k kind) resource() schema.GroupResource {
	return schema.GroupResource{Resource: [...]string{"nodes", "pods", "podprobemarkers", "nodepodprobes", "probeplans", "probereports"}[k]}
}

func (k kind) String() string { return k.resource().Resource }

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

// event is a change of an object. after is nil if it was removed, before if it was created.
type event struct {
	version       int64
	by            string
	key           types.NamespacedName
	before, after client.Object
}

// table contains the objects of one kind, and all their changes.
type table struct {
	objects map[types.NamespacedName]client.Object
	log     []event
}

// server is the API server. Its objects are never changed in place.
type server struct {
	version int64
	uids    int
	tables  [kindCount]table
	// owners are the fields of pods by field manager: see apply.go.
	owners map[types.UID]map[string]map[field]bool
	// wrote is called after each change.
	wrote func(by string, k kind, e event)
}

func newServer() *server {
	s := &server{owners: map[types.UID]map[string]map[field]bool{}}
	for k := range s.tables {
		s.tables[k].objects = map[types.NamespacedName]client.Object{}
	}
	return s
}

func (s *server) get(k kind, key types.NamespacedName) (client.Object, error) {
	o, found := s.tables[k].objects[key]
	if !found {
		return nil, apierrors.NewNotFound(k.resource(), key.Name)
	}
	return o, nil
}

// list returns the objects of a kind, ordered by namespace and name.
func (s *server) list(k kind) []client.Object {
	keys := slices.SortedFunc(maps.Keys(s.tables[k].objects), compareNames)
	all := make([]client.Object, 0, len(keys))
	for _, key := range keys {
		all = append(all, s.tables[k].objects[key])
	}
	return all
}

func compareNames(a, b types.NamespacedName) int {
	if a.Namespace != b.Namespace {
		return compare(a.Namespace, b.Namespace)
	}
	return compare(a.Name, b.Name)
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

func (s *server) put(by string, k kind, o client.Object) client.Object {
	key := client.ObjectKeyFromObject(o)
	before := s.tables[k].objects[key]
	s.version++
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	s.tables[k].objects[key] = o
	s.record(by, k, event{version: s.version, by: by, key: key, before: before, after: o})
	return o
}

func (s *server) record(by string, k kind, e event) {
	s.tables[k].log = append(s.tables[k].log, e)
	if s.wrote != nil {
		s.wrote(by, k, e)
	}
}

func (s *server) create(by string, k kind, in client.Object) (client.Object, error) {
	o := clone(in)
	if _, found := s.tables[k].objects[client.ObjectKeyFromObject(o)]; found {
		return nil, apierrors.NewAlreadyExists(k.resource(), o.GetName())
	}
	s.uids++
	o.SetUID(types.UID("uid-" + strconv.Itoa(s.uids)))
	o.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	o.SetGeneration(1)
	return s.put(by, k, o), nil
}

// preconditions are what an object must be for a write. Empty values match everything.
type preconditions struct {
	uid     types.UID
	version string
}

// update changes an object, unless the change changes nothing. An object that is being deleted is removed
// with its last finalizer.
func (s *server) update(by string, k kind, key types.NamespacedName, p preconditions, change func(client.Object) error) (client.Object, error) {
	stored, err := s.get(k, key)
	if err != nil {
		return nil, err
	}
	if p.uid != "" && p.uid != stored.GetUID() || p.version != "" && p.version != stored.GetResourceVersion() {
		return nil, conflict(k, key, fmt.Sprintf("it has the UID %s and the version %s", stored.GetUID(), stored.GetResourceVersion()))
	}
	o := clone(stored)
	if err := change(o); err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(o, stored) {
		return stored, nil
	}
	if specChanged(stored, o) {
		o.SetGeneration(stored.GetGeneration() + 1)
	}
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && k != pods {
		s.remove(by, k, key)
		return o, nil
	}
	return s.put(by, k, o), nil
}

func conflict(k kind, key types.NamespacedName, reason string) error {
	return apierrors.NewConflict(k.resource(), key.Name, fmt.Errorf("precondition failed: %s", reason))
}

// specChanged reports whether the API server increases the generation.
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

// remove removes an object at once.
func (s *server) remove(by string, k kind, key types.NamespacedName) {
	before, found := s.tables[k].objects[key]
	if !found {
		return
	}
	s.version++
	delete(s.tables[k].objects, key)
	last := clone(before)
	last.SetResourceVersion(strconv.FormatInt(s.version, 10))
	s.record(by, k, event{version: s.version, by: by, key: key, before: last})
}

// delete requests a deletion. Pods are removed by their kubelet.
func (s *server) delete(by string, k kind, key types.NamespacedName, p preconditions) error {
	stored, err := s.get(k, key)
	if err != nil {
		return err
	}
	if k == pods || len(stored.GetFinalizers()) > 0 {
		_, err = s.update(by, k, key, p, func(o client.Object) error {
			if o.GetDeletionTimestamp() == nil {
				now := metav1.NewTime(time.Now().Truncate(time.Second))
				o.SetDeletionTimestamp(&now)
			}
			return nil
		})
		return err
	}
	if p.uid != "" && p.uid != stored.GetUID() {
		return conflict(k, key, "it has the UID "+string(stored.GetUID()))
	}
	s.remove(by, k, key)
	return nil
}

// collect removes the objects whose Node is gone, as the garbage collector does.
func (s *server) collect() {
	alive := map[types.UID]bool{}
	for _, node := range s.list(nodes) {
		alive[node.GetUID()] = true
	}
	for _, k := range []kind{plans, slicesOfPlans, reports} {
		for _, o := range s.list(k) {
			if owners := o.GetOwnerReferences(); len(owners) > 0 && !alive[owners[0].UID] {
				s.remove("gc", k, client.ObjectKeyFromObject(o))
			}
		}
	}
}

func clone[T client.Object](o T) T { return o.DeepCopyObject().(T) } //nolint:forcetypeassert // a copy has the same type
