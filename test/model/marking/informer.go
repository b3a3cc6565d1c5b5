// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// notification is a change of the objects of an informer that a handler gets.
type notification struct {
	before, after any
	initial       bool
}

// handler gets the changes of an informer in order, later than its store.
type handler struct {
	toolscache.ResourceEventHandler
	pending []notification
	// initial is the number of pending notifications about the objects that were there at the start.
	initial int
	// starts is whether a notification may start a watch.
	starts bool
}

// deliver passes on the next n notifications, and reports whether there were any.
func (h *handler) deliver(n int) bool {
	n = min(n, len(h.pending))
	if n > 0 && h.starts {
		// Goroutines that a notification starts run before anything else happens.
		defer synctest.Wait()
	}
	for range n {
		next := h.pending[0]
		h.pending = h.pending[1:]
		h.initial = max(0, h.initial-1)
		switch {
		case next.before == nil:
			h.OnAdd(next.after, next.initial)
		case next.after == nil:
			h.OnDelete(next.before)
		default:
			h.OnUpdate(next.before, next.after)
		}
	}
	return n > 0
}

// informer is the cache of one kind of one manager.
type informer struct {
	cache.Informer
	server *server
	kind   kind
	// whole is whether Nodes have more than their metadata.
	whole     bool
	transform toolscache.TransformFunc
	// selects reports whether the watch has the object.
	selects func(client.Object) bool
	indexer toolscache.Indexer
	// next is the index of the next event in the log of the server.
	next     int
	handlers []*handler
	// added is called for each new handler. mu guards the handlers, because sources start at the same time.
	added func(*informer, *handler)
	mu    *sync.Mutex
}

// list fills the store with the objects as they were before the last events.
func (i *informer) list(lag int) {
	log := i.server.Tables[i.kind].Log
	i.next = max(0, len(log)-lag)
	for _, e := range log[:i.next] {
		i.apply(e, false)
	}
}

// advance receives the next n events, and reports whether there were any.
func (i *informer) advance(n int) bool {
	log := i.server.Tables[i.kind].Log
	end := min(len(log), i.next+n)
	received := i.next < end
	for ; i.next < end; i.next++ {
		i.apply(log[i.next], true)
	}
	return received
}

// relist replaces the store, as after a watch that cannot be continued. The events in between are lost.
func (i *informer) relist() {
	live := map[types.NamespacedName]bool{}
	for _, o := range i.server.List(i.kind) {
		if i.selects(o) {
			live[client.ObjectKeyFromObject(o)] = true
			i.store(o, true)
		}
	}
	for _, stored := range i.indexer.List() {
		o := stored.(client.Object) //nolint:forcetypeassert // all are
		if key := client.ObjectKeyFromObject(o); !live[key] {
			_ = i.indexer.Delete(stored)
			i.notify(notification{before: toolscache.DeletedFinalStateUnknown{Key: key.String(), Obj: stored}})
		}
	}
	i.next = len(i.server.Tables[i.kind].Log)
}

// apply puts the result of an event into the store.
func (i *informer) apply(e event, notify bool) {
	if e.After != nil && i.selects(e.After) {
		i.store(e.After, notify)
		return
	}
	gone := e.After
	if gone == nil {
		gone = e.Before
	}
	if _, found, _ := i.indexer.Get(gone); !found {
		return
	}
	last := i.transformed(gone)
	_ = i.indexer.Delete(last)
	if notify {
		i.notify(notification{before: last})
	}
}

func (i *informer) store(o client.Object, notify bool) {
	before, found, _ := i.indexer.Get(o)
	if found && before.(client.Object).GetResourceVersion() == o.GetResourceVersion() { //nolint:forcetypeassert // all are
		return
	}
	after := i.transformed(o)
	if found {
		_ = i.indexer.Update(after)
	} else {
		_ = i.indexer.Add(after)
	}
	if notify {
		i.notify(notification{before: before, after: after})
	}
}

func (i *informer) transformed(o client.Object) client.Object {
	if node, ok := o.(*corev1.Node); ok && !i.whole {
		o = &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: node.ObjectMeta}
	}
	if i.transform == nil {
		return o
	}
	out, err := i.transform(clone(o))
	if err != nil {
		panic(err)
	}
	return out.(client.Object) //nolint:forcetypeassert // all are
}

func (i *informer) notify(n notification) {
	for _, h := range i.handlers {
		h.pending = append(h.pending, n)
	}
}

// AddEventHandlerWithOptions adds a handler, which first gets all objects in the store.
func (i *informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	added := &handler{ResourceEventHandler: h, starts: i.kind == markers}
	for _, key := range sortedKeys(i.indexer) {
		stored, _, _ := i.indexer.GetByKey(key)
		added.pending = append(added.pending, notification{after: stored, initial: true})
	}
	added.initial = len(added.pending)
	i.handlers = append(i.handlers, added)
	i.added(i, added)
	return registration{}, nil
}

// AddEventHandler adds a handler.
func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// AddIndexers adds indexes.
func (i *informer) AddIndexers(indexers toolscache.Indexers) error {
	return i.indexer.AddIndexers(indexers)
} //nolint:wrapcheck // a fake

// GetIndexer returns the store.
func (i *informer) GetIndexer() toolscache.Indexer { return i.indexer }

// HasSynced returns true.
func (*informer) HasSynced() bool { return true }

// registration says that a handler has got all objects: the run knows which have not.
type registration struct {
	toolscache.ResourceEventHandlerRegistration
}

// HasSynced returns true.
func (registration) HasSynced() bool { return true }

// informers are the cache of a manager.
type informers struct {
	cache.Cache
	of [kindCount + 1]*informer
}

// wholeNodes is the number of the informer of whole Nodes.
const wholeNodes = int(kindCount)

// newInformers returns caches with the transforms and the selectors of the options. Each lacks the last events.
func newInformers(s *server, options cache.Options, lag func() int, added func(*informer, *handler)) *informers {
	all, mu := &informers{}, &sync.Mutex{}
	for k := range all.of {
		all.of[k] = &informer{
			server: s, kind: kind(k) % kindCount, whole: k == wholeNodes, selects: func(client.Object) bool { return true }, added: added, mu: mu,
			indexer: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}),
		}
	}
	for object, by := range options.ByObject {
		if _, isBudget := object.(*policyv1.PodDisruptionBudget); isBudget {
			continue // There are no guards.
		}
		i := all.of[kindOf(object)]
		if i.transform = by.Transform; by.Field != nil {
			i.selects = func(o client.Object) bool {
				pod, isPod := o.(*corev1.Pod)
				return !isPod || by.Field.Matches(phaseOf(pod))
			}
		}
	}
	all.of[wholeNodes].transform = all.of[nodes].transform
	for _, i := range all.of {
		i.list(lag())
	}
	return all
}

// GetInformer returns the informer of the kind.
func (c *informers) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if _, isNode := o.(*corev1.Node); isNode {
		return c.of[wholeNodes], nil
	}
	return c.of[kindOf(o)], nil
}

// WaitForCacheSync returns true.
func (*informers) WaitForCacheSync(context.Context) bool { return true }

// Get reads an object without a copy.
func (c *informers) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	k := kindOf(into)
	stored, found, err := c.of[k].indexer.GetByKey(keyText(key))
	switch {
	case err != nil:
		return fmt.Errorf("get %s: %w", key, err)
	case !found:
		return apierrors.NewNotFound(k.Resource(), key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(stored).Elem())
	return nil
}

// List reads all NodePodProbes.
func (c *informers) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	list, ok := into.(*v1alpha1.NodePodProbeList)
	if !ok {
		return fmt.Errorf("unexpected list of %T", into)
	}
	for _, stored := range c.objects(plans) {
		list.Items = append(list.Items, *stored.(*v1alpha1.NodePodProbe)) //nolint:forcetypeassert // all are
	}
	return nil
}

// objects returns the objects of a kind, ordered by namespace and name.
func (c *informers) objects(k kind) []client.Object {
	var all []client.Object
	for _, key := range sortedKeys(c.of[k].indexer) {
		if stored, found, _ := c.of[k].indexer.GetByKey(key); found {
			all = append(all, stored.(client.Object)) //nolint:forcetypeassert // all are
		}
	}
	return all
}

func keyText(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

func sortedKeys(indexer toolscache.Indexer) []string {
	keys := indexer.ListKeys()
	slices.Sort(keys)
	return keys
}

func phaseOf(pod *corev1.Pod) fields.Fields {
	return fields.Set{"status.phase": string(pod.Status.Phase)}
}
