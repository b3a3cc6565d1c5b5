// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

const (
	// workers is the number of namespaces that are handled at the same time.
	workers = 4
	// firstRetry and longestRetry are the delays after the first and after many errors in a row.
	firstRetry, longestRetry = 50 * time.Millisecond, 5 * time.Minute
	// requestTimeout limits each write: the connection may hang.
	requestTimeout = 10 * time.Second
)

// Options are the dependencies of a Granter. All but the times are required.
type Options struct {
	// Config connects to the API server, with the rights of the manager.
	Config *rest.Config
	// Namespace is that of seamark-workloads, and of the manager.
	Namespace string
	// Resources are those of the sets, such as clonesets: see configv1alpha1.GrantResources.
	Resources []string
	// Log receives what is done.
	Log logr.Logger
	// Idle is how long a namespace must have no sets before its RoleBinding loses its subjects, and Drained how long it must
	// have had none before it is deleted. Zero means the defaults.
	Idle, Drained time.Duration
}

// Granter creates and removes the RoleBindings. It implements manager.Runnable. Use New to create one.
type Granter struct {
	Options
	client client.WithWatch
	world  *world
	queue  workqueue.TypedRateLimitingInterface[string]

	mu sync.Mutex
	// unneeded and emptied are since when namespaces with a RoleBinding of the manager have no sets, and it no subjects.
	unneeded, emptied map[string]time.Time
}

// New returns a Granter. It does not connect to the API server.
func New(options Options) (*Granter, error) {
	connection, err := newClient(options.Config)
	if err != nil {
		return nil, err
	}
	options.Idle, options.Drained = cmp.Or(options.Idle, idle), cmp.Or(options.Drained, drained)
	g := &Granter{
		Options: options, client: connection, unneeded: map[string]time.Time{}, emptied: map[string]time.Time{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, longestRetry)),
	}
	g.world, err = newWorld(connection, options.Resources, g.queue.Add)
	return g, err
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: one process writes.
func (*Granter) NeedLeaderElection() bool { return true }

// Start works until the context ends. A kind that the API server does not serve delays only the removal of RoleBindings.
func (g *Granter) Start(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer g.queue.ShutDown()
	for _, informer := range g.world.informers() {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), g.world.bindings.HasSynced) {
		return nil
	}
	for range workers {
		running.Go(func() {
			for g.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

// next handles a namespace. It returns false when the queue is closed.
func (g *Granter) next(ctx context.Context) bool {
	namespace, closed := g.queue.Get()
	if closed {
		return false
	}
	defer g.queue.Done(namespace)
	wait, err := g.handle(ctx, namespace)
	switch {
	case err != nil:
		// The policy refuses namespaces in which seamark-workloads may not write.
		g.Log.Info("Failed to write the RoleBinding of a namespace for seamark-workloads, retrying", "namespace", namespace, "reason", err.Error())
		g.queue.AddRateLimited(namespace)
		return true
	case wait > 0:
		g.queue.AddAfter(namespace, wait)
	}
	g.queue.Forget(namespace)
	return true
}

// handle does what is due in a namespace, and returns when it must be called again.
func (g *Granter) handle(ctx context.Context, namespace string) (time.Duration, error) {
	if namespace == g.Namespace {
		return 0, nil
	}
	next, mine, wait := decide(g.state(namespace, time.Now()))
	if next == nothing {
		return wait, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := g.write(ctx, next, namespace, mine); err != nil {
		return 0, fmt.Errorf("%s rolebinding %s: %w", next, Role, err)
	}
	g.Log.Info("Wrote the RoleBinding of a namespace for seamark-workloads", "namespace", namespace, "operation", next)
	return 0, nil // The event of the write follows.
}

// state returns what is known about a namespace now.
func (g *Granter) state(namespace string, now time.Time) state {
	s := state{
		own: g.Namespace, idle: g.Idle, drained: g.Drained, certain: g.world.synced(), needed: g.world.needs(namespace),
		bindings: in(g.world.bindings.GetIndexer(), namespace),
	}
	empty := false
	for _, binding := range s.bindings {
		empty = empty || binding.Name == Role && len(binding.Subjects) == 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s.unneeded = lasts(g.unneeded, namespace, !s.needed && s.certain && len(s.bindings) > 0, now)
	s.emptied = lasts(g.emptied, namespace, empty, now)
	return s
}

// lasts returns how long something has been so in a namespace.
func lasts(from map[string]time.Time, namespace string, is bool, now time.Time) time.Duration {
	if !is {
		delete(from, namespace)
		return 0
	}
	if _, noted := from[namespace]; !noted {
		from[namespace] = now
	}
	return now.Sub(from[namespace])
}

func (g *Granter) write(ctx context.Context, next action, namespace string, mine *rbacv1.RoleBinding) error {
	switch next {
	case create:
		return g.client.Create(ctx, binding(namespace, g.Namespace), client.FieldOwner(v1alpha1.FieldManager))
	case fill:
		return g.subjects(ctx, mine, binding(namespace, g.Namespace).Subjects)
	case empty:
		return g.subjects(ctx, mine, nil)
	default:
		version := mine.ResourceVersion
		return g.client.Delete(ctx, mine.DeepCopy(), client.Preconditions{UID: &mine.UID, ResourceVersion: &version})
	}
}

// subjects replaces the subjects of a RoleBinding.
func (g *Granter) subjects(ctx context.Context, mine *rbacv1.RoleBinding, subjects []rbacv1.Subject) error {
	changed := mine.DeepCopy()
	changed.Subjects = subjects
	return g.client.Patch(ctx, changed, client.MergeFromWithOptions(mine, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.FieldManager))
}

// Remove removes all RoleBindings that a manager has created, when seamark-workloads has been stopped, and returns their number.
// One that has no right to list them has created none.
func Remove(ctx context.Context, config *rest.Config) (int, error) {
	connection, err := newClient(config)
	if err != nil {
		return 0, err
	}
	var all rbacv1.RoleBindingList
	err = connection.List(ctx, &all, client.MatchingLabels(OfManager()))
	if apierrors.IsForbidden(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("list rolebindings: %w", err)
	}
	removed, failed := 0, []error(nil)
	for i := range all.Items {
		binding := &all.Items[i]
		// The policy permits the deletion only without subjects.
		key := types.NamespacedName{Namespace: binding.Namespace, Name: binding.Name}
		err := connection.Patch(ctx, binding, client.RawPatch(types.MergePatchType, []byte(`{"subjects":null}`)))
		gone := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		err = errors.Join(client.IgnoreNotFound(err), client.IgnoreNotFound(connection.Delete(ctx, gone)))
		if err != nil {
			failed = append(failed, fmt.Errorf("delete rolebinding %s: %w", key, err))
			continue
		}
		removed++
	}
	return removed, errors.Join(failed...)
}
