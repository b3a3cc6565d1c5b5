// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Namespace is the namespace of all objects.
const Namespace = "default"

// Object is an API object, for example a set.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is a kind of objects in the simulated cluster.
type Kind int

// The kinds. There is exactly one set.
const (
	Sets Kind = iota
	Pods
	Claims
	Revisions
	kinds
)

func (k Kind) String() string { return [...]string{"set", "pod", "claim", "revision"}[k] }

func (k Kind) resource() schema.GroupResource {
	return schema.GroupResource{Resource: k.String() + "s"}
}

// event is a change of an object. The object is nil if it was removed.
type event struct {
	version int64
	name    string
	object  Object
}

// table contains the objects of one kind by name, and all their changes.
type table struct {
	objects map[string]Object
	log     []event
}

// store is the API server. Its objects are never changed in place.
type store struct {
	now     time.Time
	version int64
	uids    int
	tables  [kinds]table
	// quota is the maximum number of pods, 0 if there is none. refuses lets changes of the images of pods fail.
	quota   int
	refuses bool
}

func newStore(now time.Time) *store {
	s := &store{now: now}
	for k := range s.tables {
		s.tables[k].objects = map[string]Object{}
	}
	return s
}

// read returns a copy of an object.
func (s *store) read(k Kind, name string) (Object, error) {
	o, ok := s.tables[k].objects[name]
	if !ok {
		return nil, apierrors.NewNotFound(k.resource(), name)
	}
	return clone(o), nil
}

// put stores a new version of the object.
func (s *store) put(k Kind, o Object) Object {
	s.version++
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	s.tables[k].objects[o.GetName()] = o
	s.tables[k].log = append(s.tables[k].log, event{version: s.version, name: o.GetName(), object: o})
	return o
}

func (s *store) create(k Kind, in Object) (Object, error) {
	o := normalize(in)
	if o.GetName() == "" {
		return nil, apierrors.NewBadRequest(k.String() + " without a name")
	}
	if _, ok := s.tables[k].objects[o.GetName()]; ok {
		return nil, apierrors.NewAlreadyExists(k.resource(), o.GetName())
	}
	if o.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion must not be set on objects to be created")
	}
	if k == Pods && s.quota > 0 && len(s.tables[Pods].objects) >= s.quota {
		return nil, apierrors.NewForbidden(k.resource(), o.GetName(), fmt.Errorf("exceeded quota: pods=%d", s.quota))
	}
	s.uids++
	o.SetNamespace(Namespace)
	o.SetUID(types.UID("uid-" + strconv.Itoa(s.uids)))
	o.SetCreationTimestamp(metav1.NewTime(s.now.Truncate(time.Second)))
	o.SetGeneration(1)
	switch o := o.(type) {
	case *corev1.Pod:
		o.Status = corev1.PodStatus{Phase: corev1.PodPending}
		o.Finalizers = slices.Clone(o.Finalizers)
	case *corev1.PersistentVolumeClaim:
		o.Finalizers = []string{"kubernetes.io/pvc-protection"}
	}
	return s.put(k, o), nil
}

// preconditions are what an object must be for a write. Empty values match everything.
type preconditions struct {
	uid     types.UID
	version string
}

func of(o metav1.Object) preconditions { return preconditions{o.GetUID(), o.GetResourceVersion()} }

func (s *store) check(k Kind, name string, p preconditions) (Object, error) {
	o, err := s.read(k, name)
	if err != nil {
		return nil, err
	}
	if p.uid != "" && p.uid != o.GetUID() || p.version != "" && p.version != o.GetResourceVersion() {
		return nil, apierrors.NewConflict(k.resource(), name,
			fmt.Errorf("UID %s and version %s do not match UID %s and version %s", o.GetUID(), o.GetResourceVersion(), p.uid, p.version))
	}
	return o, nil
}

// update changes an object. A change that changes nothing is not an event. An object that is being
// deleted is removed with its last finalizer.
func (s *store) update(k Kind, name string, p preconditions, change func(Object)) (Object, error) {
	o, err := s.check(k, name, p)
	if err != nil {
		return nil, err
	}
	before := o.DeepCopyObject()
	if change(o); s.refused(before, o) {
		return nil, apierrors.NewForbidden(k.resource(), name, errors.New("a policy refuses the image"))
	}
	if p.version != "" {
		o = normalize(o) // Only the planners write what the API server stores differently.
	}
	if equality.Semantic.DeepEqual(o, s.tables[k].objects[name]) {
		return o, nil
	}
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && k != Pods {
		s.remove(k, name)
		return o, nil
	}
	return s.put(k, o), nil
}

// refused reports whether a policy refuses the change of an object.
func (s *store) refused(before, after runtime.Object) bool {
	old, isPod := before.(*corev1.Pod)
	pod, _ := after.(*corev1.Pod)
	return isPod && s.refuses && slices.ContainsFunc(old.Spec.Containers, func(c corev1.Container) bool {
		return !slices.ContainsFunc(pod.Spec.Containers, func(n corev1.Container) bool { return n.Name == c.Name && n.Image == c.Image })
	})
}

// remove removes an object at once.
func (s *store) remove(k Kind, name string) {
	s.version++
	delete(s.tables[k].objects, name)
	s.tables[k].log = append(s.tables[k].log, event{version: s.version, name: name})
}

// delete requests the deletion. Pods are removed by their kubelet, or at once if they have none.
func (s *store) delete(k Kind, name string, p preconditions) error {
	o, err := s.check(k, name, p)
	if err != nil {
		return err
	}
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	pod, isPod := o.(*corev1.Pod)
	if len(o.GetFinalizers()) == 0 && (!isPod || pod.Spec.NodeName == "") {
		s.remove(k, name)
		return nil
	}
	now := metav1.NewTime(s.now.Truncate(time.Second))
	o.SetDeletionTimestamp(&now)
	s.put(k, o)
	return nil
}

// list returns the objects of a kind, sorted by name.
func list[T Object](objects map[string]Object) []T {
	var out []T
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		out = append(out, objects[name].(T))
	}
	return out
}

// State is the true state of the cluster. The objects are read-only.
type State struct {
	Now       time.Time
	Set       Object
	Pods      []*corev1.Pod
	Claims    []*corev1.PersistentVolumeClaim
	Revisions []*appsv1.ControllerRevision
	// Taken are names of pods that a create of this leader failed with, because pods that the set does
	// not control have them. Only the view of a leader has it.
	Taken map[string]bool
}

func (s *store) state() *State {
	return state(s.now, [kinds]map[string]Object{s.tables[0].objects, s.tables[1].objects, s.tables[2].objects, s.tables[3].objects})
}

func state(now time.Time, objects [kinds]map[string]Object) *State {
	out := &State{
		Now: now, Pods: list[*corev1.Pod](objects[Pods]), Claims: list[*corev1.PersistentVolumeClaim](objects[Claims]),
		Revisions: list[*appsv1.ControllerRevision](objects[Revisions]),
	}
	if sets := list[Object](objects[Sets]); len(sets) > 0 {
		out.Set = sets[0]
	}
	return out
}

func clone[T Object](o T) T { return o.DeepCopyObject().(T) }

// normalize returns what a client reads of an object that it has written: times have seconds, and
// empty values are absent.
func normalize(o Object) Object {
	text := encode(o)
	out := reflect.New(reflect.TypeOf(o).Elem()).Interface().(Object)
	if err := json.Unmarshal([]byte(text), out); err != nil {
		panic(fmt.Sprintf("decode %s: %v", text, err))
	}
	return out
}

func encode(o Object) string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("encode %s: %v", o.GetName(), err))
	}
	return string(text)
}
