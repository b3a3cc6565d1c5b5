// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/program/isolate"
)

// watched stores the newest version of the node's NodePodProbe, which a reflector keeps up to date,
// and the ProbePlans that it refers to, which a planReader reads. The plan is what they contain
// together.
type watched struct {
	// relisted is called when the NodePodProbe is listed again, because the watch could not be
	// continued.
	relisted func()
	// changed has a token if an object has changed or is known not to exist, and referred if the
	// NodePodProbe has: it may refer to other ProbePlans.
	changed, referred chan struct{}

	mu     sync.Mutex
	object *v1alpha1.NodePodProbe
	// listed reports whether the NodePodProbe was listed.
	listed bool
	// slices are the ProbePlans by number.
	slices map[int]slice
}

// slice is a ProbePlan and the reference for which it was read.
type slice struct {
	reference string
	plan      *seamarkv1alpha1.ProbePlan
}

func newWatched(relisted func()) *watched {
	return &watched{relisted: relisted, changed: make(chan struct{}, 1), referred: make(chan struct{}, 1), slices: map[int]slice{}}
}

// stored returns the NodePodProbe as it is stored on the API server, or nil if there is none. It
// returns false as long as this is not known.
func (w *watched) stored() (object *v1alpha1.NodePodProbe, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.object, w.listed
}

// plan returns the NodePodProbe with the whole plan in its spec, or nil if there is none. It returns
// false if a part of the plan is not known: then the plan in force stays. The plan of OpenKruise runs
// until the manager has replaced it.
func (w *watched) plan() (object *v1alpha1.NodePodProbe, complete bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.listed:
		return nil, false
	case w.object != nil && !slicing.IsSliced(w.object) && isolate.Of(w.object) != nil:
		// It cannot be decoded. The manager replaces it.
		return nil, false
	case w.object == nil || !slicing.IsSliced(w.object):
		return w.object, true
	}
	references, valid := references(w.object)
	if !valid || len(w.missing(references)) > 0 {
		return nil, false
	}
	stored := make([]*seamarkv1alpha1.ProbePlan, 0, len(references))
	for number := range references {
		stored = append(stored, w.slices[number].plan)
	}
	return slicing.Assemble(w.object, stored), true
}

// unread returns the references of the NodePodProbe to ProbePlans that were not read for them.
func (w *watched) unread() map[int]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.object == nil || !slicing.IsSliced(w.object) {
		return nil
	}
	references, _ := references(w.object)
	return w.missing(references)
}

// missing returns those of the references whose ProbePlans were not read for them.
func (w *watched) missing(references map[int]string) map[int]string {
	missing := maps.Clone(references)
	maps.DeleteFunc(missing, func(number int, reference string) bool {
		known, read := w.slices[number]
		return read && known.reference == reference
	})
	return missing
}

func references(object *v1alpha1.NodePodProbe) (references map[int]string, valid bool) {
	return slicing.ParseReferences(object.Annotations[v1alpha1.ProbePlansAnnotationKey])
}

// set stores the NodePodProbe; nil if there is none. The ProbePlans of one that is deleted stay: the
// next one may refer to them.
func (w *watched) set(object *v1alpha1.NodePodProbe) {
	w.mu.Lock()
	if object != nil {
		w.forget(object)
	}
	w.object, w.listed = object, true
	w.mu.Unlock()
	notify(w.changed)
	notify(w.referred)
}

// forget removes the ProbePlans that the NodePodProbe does not refer to. If it is older than the one
// before, the database of the API server was restored, and another ProbePlan can have the version that
// was read.
func (w *watched) forget(object *v1alpha1.NodePodProbe) {
	if w.object != nil {
		if order, err := resourceversion.CompareResourceVersion(object.ResourceVersion, w.object.ResourceVersion); err != nil || order < 0 {
			clear(w.slices)
		}
	}
	references, valid := references(object)
	if !valid {
		return
	}
	maps.DeleteFunc(w.slices, func(number int, _ slice) bool {
		_, refers := references[number]
		return !refers
	})
}

// setSlice stores a ProbePlan that was read for the reference.
func (w *watched) setSlice(number int, reference string, plan *seamarkv1alpha1.ProbePlan) {
	w.mu.Lock()
	w.slices[number] = slice{reference: reference, plan: plan}
	w.mu.Unlock()
	notify(w.changed)
}

func notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// planReader reads the ProbePlans that the NodePodProbe refers to.
type planReader struct {
	watched *watched
	client  sliceReader
	log     logr.Logger
	reads   retry
}

// sliceReader reads ProbePlans: a nodeClient.
type sliceReader interface {
	// ReadPlan returns the ProbePlan of the node with the number, in the version or a later one.
	ReadPlan(ctx context.Context, number int, version string) (*seamarkv1alpha1.ProbePlan, error)
}

// run reads ProbePlans until ctx ends.
func (r *planReader) run(ctx context.Context) {
	r.reads = newRetry()
	loop(ctx, r.watched.referred, func() time.Time {
		if len(r.watched.unread()) == 0 {
			return time.Time{}
		}
		return later(time.Now(), r.reads.notBefore)
	}, func() { r.read(ctx) })
}

// read reads what is unread, until a request fails.
func (r *planReader) read(ctx context.Context) {
	for number, version := range r.watched.unread() {
		request, cancel := context.WithTimeout(ctx, writeTimeout)
		plan, err := r.client.ReadPlan(request, number, version)
		cancel()
		if err != nil {
			if r.reads.failed() && ctx.Err() == nil {
				r.log.Error(err, "Failed to read the plan, retrying")
			}
			return
		}
		r.watched.setSlice(number, version, plan)
	}
	if r.reads.succeeded() {
		r.log.Info("Resumed reading the plan")
	}
}

// objectStore is the store of the reflector.
type objectStore struct{ *watched }

var _ cache.ReflectorStore = objectStore{}

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
