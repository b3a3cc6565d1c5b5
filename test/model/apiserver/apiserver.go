// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver is the API server of the simulated clusters: objects in memory, and all their changes, which watches
// deliver later. What surrounds it lets requests fail, stall and lose their responses.
package apiserver

import (
	"cmp"
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
)

// Kind is a number of a kind of objects.
type Kind interface {
	~int
	// Resource returns the resource for errors.
	Resource() schema.GroupResource
}

// Event is a change of an object. After is nil if it was removed, Before if it was created.
type Event struct {
	Version       int64
	By            string
	Key           types.NamespacedName
	Before, After client.Object
}

// Table contains the objects of one kind, and all their changes.
type Table struct {
	Objects map[types.NamespacedName]client.Object
	Log     []Event
}

// Server is an API server. Its objects are never changed in place.
type Server[K Kind] struct {
	// Version is that of the last change, and UIDs is how many there are.
	Version int64
	UIDs    int
	Tables  []Table
	// Now returns the time.
	Now func() time.Time
	// Generation reports whether a change increases the generation.
	Generation func(before, after client.Object) bool
	// Wrote is called after each change, unless it is nil.
	Wrote func(K, Event)
}

// New returns a server with so many kinds.
func New[K Kind](kinds K, now func() time.Time, generation func(before, after client.Object) bool) *Server[K] {
	s := &Server[K]{Tables: make([]Table, kinds), Now: now, Generation: generation}
	for k := range s.Tables {
		s.Tables[k].Objects = map[types.NamespacedName]client.Object{}
	}
	return s
}

// Get returns a stored object.
func (s *Server[K]) Get(k K, key types.NamespacedName) (client.Object, error) {
	o, found := s.Tables[k].Objects[key]
	if !found {
		return nil, apierrors.NewNotFound(k.Resource(), key.Name)
	}
	return o, nil
}

// List returns the objects of a kind, ordered by namespace and name.
func (s *Server[K]) List(k K) []client.Object { return Sorted(s.Tables[k].Objects) }

// Sorted returns objects in the order of their namespaces and names.
func Sorted(objects map[types.NamespacedName]client.Object) []client.Object {
	all := make([]client.Object, 0, len(objects))
	for _, key := range slices.SortedFunc(maps.Keys(objects), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}) {
		all = append(all, objects[key])
	}
	return all
}

func (s *Server[K]) put(by string, k K, o client.Object) client.Object {
	key := client.ObjectKeyFromObject(o)
	before := s.Tables[k].Objects[key]
	s.Version++
	o.SetResourceVersion(strconv.FormatInt(s.Version, 10))
	s.Tables[k].Objects[key] = o
	s.record(k, Event{Version: s.Version, By: by, Key: key, Before: before, After: o})
	return o
}

func (s *Server[K]) record(k K, e Event) {
	s.Tables[k].Log = append(s.Tables[k].Log, e)
	if s.Wrote != nil {
		s.Wrote(k, e)
	}
}

// Create stores a copy of an object.
func (s *Server[K]) Create(by string, k K, in client.Object) (client.Object, error) {
	o := Clone(in)
	if _, found := s.Tables[k].Objects[client.ObjectKeyFromObject(o)]; found {
		return nil, apierrors.NewAlreadyExists(k.Resource(), o.GetName())
	}
	s.UIDs++
	o.SetUID(types.UID("uid-" + strconv.Itoa(s.UIDs)))
	o.SetCreationTimestamp(metav1.NewTime(s.Now().Truncate(time.Second)))
	o.SetGeneration(1)
	return s.put(by, k, o), nil
}

// Preconditions are what an object must be for a write. Empty values match everything.
type Preconditions struct {
	UID     types.UID
	Version string
}

func (s *Server[K]) check(k K, key types.NamespacedName, p Preconditions) (client.Object, error) {
	o, err := s.Get(k, key)
	if err == nil && (p.UID != "" && p.UID != o.GetUID() || p.Version != "" && p.Version != o.GetResourceVersion()) {
		err = apierrors.NewConflict(k.Resource(), key.Name, fmt.Errorf(
			"UID %s and version %s do not match UID %s and version %s", o.GetUID(), o.GetResourceVersion(), p.UID, p.Version))
	}
	return o, err
}

// Update changes a copy of an object. A change that changes nothing is not an event. An object that is being
// deleted is removed with its last finalizer, unless a kubelet removes it.
func (s *Server[K]) Update(by string, k K, key types.NamespacedName, p Preconditions, change func(client.Object) error) (client.Object, error) {
	stored, err := s.check(k, key, p)
	if err != nil {
		return nil, err
	}
	o := Clone(stored)
	if err := change(o); err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(o, stored) {
		return stored, nil
	}
	if s.Generation(stored, o) {
		o.SetGeneration(stored.GetGeneration() + 1)
	}
	if _, isPod := o.(*corev1.Pod); !isPod && o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
		s.Remove(by, k, key)
		return o, nil
	}
	return s.put(by, k, o), nil
}

// Remove removes an object at once, if it exists.
func (s *Server[K]) Remove(by string, k K, key types.NamespacedName) {
	before, found := s.Tables[k].Objects[key]
	if !found {
		return
	}
	s.Version++
	delete(s.Tables[k].Objects, key)
	last := Clone(before)
	last.SetResourceVersion(strconv.FormatInt(s.Version, 10))
	s.record(k, Event{Version: s.Version, By: by, Key: key, Before: last})
}

// Delete requests a deletion. Pods with a node are removed by their kubelet, and objects with finalizers later.
func (s *Server[K]) Delete(by string, k K, key types.NamespacedName, p Preconditions) error {
	stored, err := s.check(k, key, p)
	if err != nil {
		return err
	}
	if pod, isPod := stored.(*corev1.Pod); len(stored.GetFinalizers()) == 0 && (!isPod || pod.Spec.NodeName == "") {
		s.Remove(by, k, key)
		return nil
	}
	_, err = s.Update(by, k, key, p, func(o client.Object) error {
		if o.GetDeletionTimestamp() == nil {
			now := metav1.NewTime(s.Now().Truncate(time.Second))
			o.SetDeletionTimestamp(&now)
		}
		return nil
	})
	return err
}

// Clone returns a copy of an object.
func Clone[T client.Object](o T) T { return o.DeepCopyObject().(T) } //nolint:forcetypeassert // a copy has the same type

// Of returns the preconditions that the object is still as it was.
func Of(o client.Object) Preconditions {
	return Preconditions{UID: o.GetUID(), Version: o.GetResourceVersion()}
}
