// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
)

// watched stores the newest versions of the node's NodePodProbe and ProbePlans, which two reflectors
// keep up to date. The plan is what they contain together.
type watched struct {
	// relisted is called when the NodePodProbe is listed again, because the watch could not be
	// continued.
	relisted func()
	// changed has a token if an object has changed or is known not to exist.
	changed chan struct{}

	mu     sync.Mutex
	object *v1alpha1.NodePodProbe
	slices map[string]*seamarkv1alpha1.ProbePlan
	// gone are the ProbePlans that were deleted, which count until a time.
	gone map[string]deleted
	// listed and slicesListed report whether the objects were listed.
	listed, slicesListed bool
}

// deleted is a ProbePlan that counts until a time, although it is deleted.
type deleted struct {
	slice *seamarkv1alpha1.ProbePlan
	until time.Time
}

func newWatched(relisted func()) *watched {
	return &watched{
		relisted: relisted, changed: make(chan struct{}, 1),
		slices: map[string]*seamarkv1alpha1.ProbePlan{}, gone: map[string]deleted{},
	}
}

// stored returns the NodePodProbe as it is stored on the API server, or nil if there is none. It
// returns false as long as this is not known.
func (w *watched) stored() (object *v1alpha1.NodePodProbe, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.object, w.listed
}

// plan returns the NodePodProbe with the whole plan in its spec, or nil if there is none, and when to
// ask again although no object has changed; zero is never. It returns false if a part of the plan is
// not known: then the plan in force stays.
func (w *watched) plan(now time.Time) (object *v1alpha1.NodePodProbe, again time.Time, complete bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.listed:
		return nil, again, false
	case w.object == nil || !slicing.IsSliced(w.object):
		return w.object, again, true
	}
	stored := make([]*seamarkv1alpha1.ProbePlan, 0, len(w.slices)+len(w.gone))
	for _, slice := range w.slices {
		stored = append(stored, slice)
	}
	if !w.slicesListed || !slicing.IsComplete(w.object, stored) {
		return nil, again, false
	}
	for name, gone := range w.gone {
		if !gone.until.After(now) {
			delete(w.gone, name)
			continue
		}
		stored = append(stored, w.without(gone.slice))
		if again.IsZero() || gone.until.Before(again) {
			again = gone.until
		}
	}
	return slicing.Assemble(w.object, stored), again, true
}

// without returns a deleted ProbePlan without the pods that others have, and without a generation: it
// is not part of the plan that the manager knows.
func (w *watched) without(gone *seamarkv1alpha1.ProbePlan) *seamarkv1alpha1.ProbePlan {
	elsewhere := map[string]bool{}
	for _, slice := range w.slices {
		for i := range slice.Pods {
			elsewhere[slice.Pods[i].UID] = true
		}
	}
	rest := &seamarkv1alpha1.ProbePlan{NodeName: gone.NodeName}
	rest.Name = gone.Name
	for i := range gone.Pods {
		if !elsewhere[gone.Pods[i].UID] {
			rest.Pods = append(rest.Pods, gone.Pods[i])
		}
	}
	return rest
}

// change applies a change of the objects.
func (w *watched) change(apply func()) {
	w.mu.Lock()
	apply()
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// set stores the NodePodProbe; nil if there is none.
func (w *watched) set(object *v1alpha1.NodePodProbe) {
	w.change(func() { w.object, w.listed = object, true })
}

// setSlice stores a ProbePlan.
func (w *watched) setSlice(slice *seamarkv1alpha1.ProbePlan) {
	w.change(func() {
		w.slices[slice.Name] = slice
		delete(w.gone, slice.Name)
	})
}

// removeSlice removes a ProbePlan, which counts for a while. It requires the lock.
func (w *watched) removeSlice(name string) {
	if slice := w.slices[name]; slice != nil {
		w.gone[name] = deleted{slice: slice, until: time.Now().Add(absenceGrace)}
		delete(w.slices, name)
	}
}

// objectStore and planStore are the stores of the reflectors.
type (
	objectStore struct{ *watched }
	planStore   struct{ *watched }
)

var (
	_ cache.ReflectorStore = objectStore{}
	_ cache.ReflectorStore = planStore{}
)

// Add stores a new object.
func (w objectStore) Add(object any) error { return w.Update(object) }

// Update stores a changed object.
func (w objectStore) Update(object any) error {
	if npp, ok := object.(*v1alpha1.NodePodProbe); ok {
		w.set(npp)
	}
	return nil
}

// Delete removes the object.
func (w objectStore) Delete(any) error {
	w.set(nil)
	return nil
}

// Replace stores a complete list, which has at most one object.
func (w objectStore) Replace(objects []any, _ string) error {
	if _, known := w.stored(); known {
		w.relisted()
	}
	if len(objects) == 0 {
		return w.Delete(nil)
	}
	return w.Update(objects[0])
}

// Resync does nothing.
func (w objectStore) Resync() error { return nil }

// Add stores a new ProbePlan.
func (w planStore) Add(object any) error { return w.Update(object) }

// Update stores a changed ProbePlan.
func (w planStore) Update(object any) error {
	if slice, ok := object.(*seamarkv1alpha1.ProbePlan); ok {
		w.setSlice(slice)
	}
	return nil
}

// Delete removes a ProbePlan.
func (w planStore) Delete(object any) error {
	if slice, ok := object.(*seamarkv1alpha1.ProbePlan); ok {
		w.change(func() { w.removeSlice(slice.Name) })
	}
	return nil
}

// Replace stores a complete list.
func (w planStore) Replace(objects []any, _ string) error {
	w.change(func() {
		w.slicesListed = true
		listed := map[string]*seamarkv1alpha1.ProbePlan{}
		for _, object := range objects {
			if slice, ok := object.(*seamarkv1alpha1.ProbePlan); ok {
				listed[slice.Name] = slice
				delete(w.gone, slice.Name)
			}
		}
		for name := range w.slices {
			if listed[name] == nil {
				w.removeSlice(name)
			}
		}
		w.slices = listed
	})
	return nil
}

// Resync does nothing.
func (w planStore) Resync() error { return nil }
