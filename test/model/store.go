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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/model/apiserver"
)

// Namespace is the namespace of all objects.
const Namespace = "default"

// Object is an API object, for example a set.
type Object = client.Object

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

// Resource returns the resource of the kind.
func (k Kind) Resource() schema.GroupResource {
	return schema.GroupResource{Resource: k.String() + "s"}
}

// store is the API server.
type store struct {
	*apiserver.Server[Kind]
	now time.Time
	// quota is the maximum number of pods, 0 if there is none. refuses lets changes of the images of pods fail.
	quota   int
	refuses bool
}

type preconditions = apiserver.Preconditions

func newStore(now time.Time) *store {
	s := &store{now: now}
	s.Server = apiserver.New(kinds, func() time.Time { return s.now }, func(_, _ Object) bool { return false })
	return s
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: Namespace, Name: name}
}

func (s *store) create(k Kind, in Object) (Object, error) {
	o := normalize(in)
	o.SetNamespace(Namespace)
	_, missing := s.Get(k, keyOf(o.GetName()))
	switch {
	case o.GetName() == "":
		return nil, apierrors.NewBadRequest(k.String() + " without a name")
	case missing == nil:
	case o.GetResourceVersion() != "":
		return nil, apierrors.NewBadRequest("resourceVersion must not be set on objects to be created")
	case k == Pods && s.quota > 0 && len(s.Tables[Pods].Objects) >= s.quota:
		return nil, apierrors.NewForbidden(k.Resource(), o.GetName(), fmt.Errorf("exceeded quota: pods=%d", s.quota))
	}
	switch o := o.(type) {
	case *corev1.Pod:
		o.Status = corev1.PodStatus{Phase: corev1.PodPending}
	case *corev1.PersistentVolumeClaim:
		o.Finalizers = []string{"kubernetes.io/pvc-protection"}
	}
	return s.Create("", k, o)
}

// update changes an object.
func (s *store) update(k Kind, name string, p preconditions, change func(Object)) (Object, error) {
	return s.Update("", k, keyOf(name), p, func(o Object) error {
		before := o.DeepCopyObject()
		if change(o); s.refused(before, o) {
			return apierrors.NewForbidden(k.Resource(), name, errors.New("a policy refuses the image"))
		}
		if p.Version != "" {
			// Only the planners write what the API server stores differently.
			reflect.ValueOf(o).Elem().Set(reflect.ValueOf(normalize(o)).Elem())
		}
		return nil
	})
}

// refused reports whether a policy refuses the change of an object.
func (s *store) refused(before, after runtime.Object) bool {
	old, isPod := before.(*corev1.Pod)
	pod, _ := after.(*corev1.Pod)
	return isPod && s.refuses && slices.ContainsFunc(old.Spec.Containers, func(c corev1.Container) bool {
		return !slices.ContainsFunc(pod.Spec.Containers, func(n corev1.Container) bool { return n.Name == c.Name && n.Image == c.Image })
	})
}

type objects = map[types.NamespacedName]Object

// list returns objects of a type, sorted by name.
func list[T Object](all objects) []T {
	var out []T
	for _, o := range apiserver.Sorted(all) {
		out = append(out, o.(T))
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
	var all [kinds]objects
	for k := range kinds {
		all[k] = s.Tables[k].Objects
	}
	return state(s.now, all)
}

func state(now time.Time, objects [kinds]objects) *State {
	out := &State{
		Now: now, Pods: list[*corev1.Pod](objects[Pods]), Claims: list[*corev1.PersistentVolumeClaim](objects[Claims]),
		Revisions: list[*appsv1.ControllerRevision](objects[Revisions]),
	}
	if sets := list[Object](objects[Sets]); len(sets) > 0 {
		out.Set = sets[0]
	}
	return out
}

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

// cache is what the informers of one leader contain. Each kind lags on its own.
type cache struct {
	store *store
	kinds [kinds]struct {
		objects objects
		// next is the index of the next event in the log of the table, version the version of the last one.
		next    int
		version int64
	}
}

// newCache returns a cache that lacks the last events of each kind.
func newCache(s *store, lag func(Kind) int) *cache {
	c := &cache{store: s}
	for k := range kinds {
		c.kinds[k].objects = objects{}
		c.advance(k, max(0, len(s.Tables[k].Log)-lag(k)))
	}
	return c
}

// advance receives up to n events of a kind and reports whether there were any.
func (c *cache) advance(k Kind, n int) bool {
	log, kind := c.store.Tables[k].Log, &c.kinds[k]
	end := min(len(log), kind.next+n)
	if kind.next == end {
		return false
	}
	for _, e := range log[kind.next:end] {
		if e.After == nil {
			delete(kind.objects, e.Key)
		} else {
			kind.objects[e.Key] = e.After
		}
		kind.version = e.Version
	}
	kind.next = end
	return true
}

// catchUp receives all events and reports whether there were any.
func (c *cache) catchUp() bool {
	received := false
	for k := range kinds {
		received = c.advance(k, len(c.store.Tables[k].Log)) || received
	}
	return received
}

func (c *cache) state() *State {
	var all [kinds]objects
	for k := range kinds {
		all[k] = maps.Clone(c.kinds[k].objects)
	}
	return state(c.store.now, all)
}

// written is what a leader remembers of its own writes, per kind.
type written struct {
	versions [kinds]int64
	deleted  map[types.UID]string
}

// raise remembers a write, unless the version is empty.
func (w *written) raise(k Kind, version string) {
	number, _ := strconv.ParseInt(version, 10, 64)
	w.versions[k] = max(w.versions[k], number)
}

// seen reports whether the cache contains all of these writes. It forgets deletions that it contains.
func (w *written) seen(c *cache) bool {
	for k, version := range w.versions {
		if c.kinds[k].version < version {
			return false
		}
	}
	for uid, name := range w.deleted {
		o, ok := c.kinds[Pods].objects[keyOf(name)]
		if ok && o.GetUID() == uid && o.GetDeletionTimestamp() == nil {
			return false
		}
		delete(w.deleted, uid)
	}
	return true
}
