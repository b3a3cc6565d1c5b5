// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/until"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// source is what is listed and watched of one resource.
type source struct {
	resource permission.Resource
	list     client.ObjectList
	object   client.Object
	which    []client.ListOption
}

// sources returns the pods, and their events if an expression refers to them.
func (o *Options) sources(namespace string) []source {
	pods := source{permission.Pods, &corev1.PodList{}, &corev1.Pod{}, []client.ListOption{client.InNamespace(namespace)}}
	if o.selector != nil {
		pods.which = append(pods.which, client.MatchingLabelsSelector{Selector: o.selector})
	}
	if len(o.Pods) == 1 {
		pods.which = append(pods.which, client.MatchingFields{metav1.ObjectNameField: o.Pods[0]})
	}
	if !slices.ContainsFunc(o.expressions, until.Expression.IsEvent) {
		return []source{pods}
	}
	ofPods := client.MatchingFields{"involvedObject.kind": "Pod"}
	return []source{pods, {permission.Events, &corev1.EventList{}, &corev1.Event{}, []client.ListOption{client.InNamespace(namespace), ofPods}}}
}

// watch evaluates the expressions whenever a pod or an event changes, until all are met or the
// timeout has passed, and returns the last verdicts. Errors of the first requests end it; later ones
// are outages, in which client-go repeats the requests.
func (o *Options) watch(ctx context.Context, connection cluster.Connection) ([]until.Verdict, error) {
	if o.Timeout > 0 {
		var err error
		if connection, _, err = connection.Unlimited(); err != nil {
			return nil, err
		}
	}
	// Without a logger of its own, client-go writes to standard error.
	ctx, stop := context.WithCancelCause(klog.NewContext(ctx, logr.Discard()))
	var informers sync.WaitGroup
	defer informers.Wait()
	defer stop(nil)

	changed := make(chan struct{}, 1)
	f := &follower{client: connection.Client, stop: stop, changed: changed}
	var stores []cache.Store
	var synced []cache.DoneChecker
	for _, s := range o.sources(connection.Namespace) {
		store, informer := f.informer(s, connection.Namespace)
		stores, synced = append(stores, store), append(synced, informer.HasSyncedChecker())
		informers.Go(func() { informer.RunWithContext(ctx) })
	}
	var expired <-chan time.Time
	if o.Timeout > 0 {
		expired = time.After(o.Timeout)
	}
	for _, s := range synced {
		select {
		case <-s.Done():
		case <-expired:
			return nil, exit.NoAccess(fmt.Errorf("the cluster has not answered within --timeout=%s", o.Timeout))
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for {
		verdicts := o.verdicts(stores)
		if met(verdicts) || o.Timeout == 0 {
			return verdicts, nil
		}
		select {
		case <-changed:
		case <-expired:
			return o.verdicts(stores), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// follower runs the informers of a watch.
type follower struct {
	client client.WithWatch
	// stop ends the watch with an error.
	stop context.CancelCauseFunc
	// changed has a value if an object has changed.
	changed chan<- struct{}
}

// informer returns the store of a source, and the informer that fills it.
func (f *follower) informer(s source, namespace string) (cache.Store, cache.Controller) {
	var answered bool
	failed := func(verb string, err error) error {
		missing, fatal := cluster.MissingOf(err, verb, s.resource, namespace)
		switch {
		case missing != nil:
			f.stop(exit.NoAccess(fmt.Errorf("%s; %s", missing, missing.Fix())))
		case !answered:
			f.stop(fatal)
		}
		return err
	}
	requests := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, _ := s.list.DeepCopyObject().(client.ObjectList)
			err := f.client.List(ctx, list, slices.Concat([]client.ListOption{&client.ListOptions{Raw: &options}}, s.which)...)
			if err != nil {
				return nil, failed("list", err)
			}
			answered = true
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			list, _ := s.list.DeepCopyObject().(client.ObjectList)
			events, err := f.client.Watch(ctx, list, slices.Concat([]client.ListOption{&client.ListOptions{Raw: &options}}, s.which)...)
			if err != nil {
				return nil, failed("watch", err)
			}
			return events, nil
		},
	}
	notify := func(any) {
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
	return cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(requests, cluster.Paged{}), ObjectType: s.object, Transform: trim,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: notify, UpdateFunc: func(_, object any) { notify(object) }, DeleteFunc: notify},
	})
}

// trim removes what no expression refers to.
func trim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
				Labels: o.Labels, Annotations: o.Annotations,
			},
			Status: corev1.PodStatus{
				Phase: o.Status.Phase, Conditions: o.Status.Conditions,
				ContainerStatuses: o.Status.ContainerStatuses, InitContainerStatuses: o.Status.InitContainerStatuses,
			},
		}, nil
	case *corev1.Event:
		o.ManagedFields = nil
	}
	return object, nil
}

// verdicts evaluates the expressions for the objects of the stores: the pods, and their events if
// an expression refers to them.
func (o *Options) verdicts(stores []cache.Store) []until.Verdict {
	var views []local.PodView
	found := map[types.UID]bool{}
	for _, object := range stores[0].List() {
		pod, isPod := object.(*corev1.Pod)
		if isPod && (len(o.Pods) == 0 || slices.Contains(o.Pods, pod.Name)) {
			views, found[pod.UID] = append(views, local.PodView{Pod: pod}), true
		}
	}
	slices.SortFunc(views, func(a, b local.PodView) int {
		return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
	})
	w := until.NewWatch(o.expressions, views)
	w.Any = o.Any
	var events []*corev1.Event
	for _, store := range stores[1:] {
		for _, object := range store.List() {
			if event, isEvent := object.(*corev1.Event); isEvent && found[event.InvolvedObject.UID] {
				events = append(events, event)
			}
		}
	}
	slices.SortFunc(events, func(a, b *corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	for _, event := range events {
		w.Observe(local.Change{
			Kind: local.KindEvent, Namespace: event.InvolvedObject.Namespace, Pod: event.InvolvedObject.Name,
			Event: &local.PodEvent{Type: event.Type, Reason: event.Reason, Message: event.Message},
		})
	}
	return w.Verdicts()
}

// report prints the verdicts. It returns an error if an expression is not met.
func (o *Options) report(verdicts []until.Verdict) error {
	unmet := 0
	for _, verdict := range verdicts {
		state := "met"
		if !verdict.Met {
			unmet++
			state = "not met: " + text.Truncate(verdict.Last, maxLast)
		}
		if _, err := fmt.Fprintf(o.Out, "%s: %s\n", verdict.Expression, state); err != nil {
			return exit.Failure(fmt.Errorf("print the result: %w", err))
		}
	}
	if unmet == 0 {
		return nil
	}
	hint := ""
	if !o.Any {
		hint = "; use --any if one pod is enough"
	}
	return exit.Failure(fmt.Errorf("%d of %d expressions not met after %s%s", unmet, len(verdicts), o.Timeout, hint))
}
