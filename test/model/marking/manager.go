// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	product "github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/marking/plan"
)

// manager is one process with the controllers of Seamark.
type manager struct {
	world  *world
	name   string
	cache  *informers
	stop   context.CancelFunc
	dead   bool
	since  time.Time
	parts  []*part
	common []*handler
	// starting is the controller whose sources are being started.
	starting *part
	// busy are the names of the controllers that handle a request.
	busy map[string]bool
	// seen are the pods in the cache when the controller that releases markers began to handle a request.
	seen []client.Object
}

// part is one of its controllers.
type part struct {
	name     string
	do       reconcile.Reconciler
	queue    *queue
	handlers []*handler
	kinds    []kind
}

// ready reports whether the handlers got all objects that were there at the start.
func (p *part) ready() bool {
	return !slices.ContainsFunc(p.handlers, func(h *handler) bool { return h.initial > 0 })
}

func managerOptions() product.Options {
	one := configv1alpha1.Controller{Concurrency: 1}
	return product.Options{
		Namespace:   system,
		Controllers: configv1alpha1.Controllers{NodeProbe: one, PodMark: one, Marker: one, Serverless: one},
		Defaults:    plan.KubernetesDefaults(), Logger: logr.Discard(),
	}
}

// newManager starts a manager. lag returns how many events the cache of a kind lacks.
func (w *world) newManager(lag func() int) *manager {
	w.started++
	m := &manager{world: w, name: fmt.Sprintf("manager %d", w.started), since: time.Now(), busy: map[string]bool{}}
	ctx, stop := context.WithCancel(w.ctx)
	m.stop = stop
	options := managerOptions()
	options.Registry = prometheus.NewRegistry()
	m.cache = newInformers(w.server, product.Caches(options), lag, func(i *informer, h *handler) {
		if m.starting == nil {
			m.common = append(m.common, h)
			return
		}
		m.starting.handlers = append(m.starting.handlers, h)
		m.starting.kinds = append(m.starting.kinds, i.kind)
	})
	host := &host{manager: m}
	if _, err := product.AddControllers(ctx, host, options, product.Clients{Metadata: metadataClient{m}, Recorder: &record.FakeRecorder{}}); err != nil {
		panic(err)
	}
	for _, runnable := range host.others {
		w.running.Go(func() { _ = runnable.Start(ctx) })
	}
	for _, c := range host.controllers {
		m.startController(ctx, c)
	}
	w.trace("%s starts", m.name)
	return m
}

// startController starts a controller of controller-runtime, whose queue is that of the run.
func (m *manager) startController(ctx context.Context, c ctrlmanager.Runnable) {
	fields := reflect.ValueOf(c).Elem()
	p := &part{queue: newQueue(), name: fields.FieldByName("Name").String()}
	p.do, _ = fields.FieldByName("Do").Interface().(reconcile.Reconciler)
	fields.FieldByName("NewQueue").Set(reflect.ValueOf(func(string, workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request] {
		return p.queue
	}))
	m.starting = p
	m.world.running.Go(func() { _ = c.Start(ctx) })
	synctest.Wait()
	m.starting = nil
	order := make([]int, len(p.handlers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(p.kinds[a]) - int(p.kinds[b]) })
	sorted := make([]*handler, 0, len(order))
	for _, i := range order {
		sorted = append(sorted, p.handlers[i])
	}
	p.handlers = sorted
	m.parts = append(m.parts, p)
}

// kill ends the process: it writes nothing any more.
func (m *manager) kill() {
	if !m.dead {
		m.dead = true
		m.stop()
		m.world.trace("%s ends", m.name)
	}
}

// deliver passes up to n notifications to one of the handlers, and reports whether there were any.
func (m *manager) deliver(r *rand.Rand, n int) bool {
	waiting := slices.DeleteFunc(m.handlers(), func(h *handler) bool { return len(h.pending) == 0 })
	return len(waiting) > 0 && waiting[r.IntN(len(waiting))].deliver(n)
}

func (m *manager) handlers() []*handler {
	all := slices.Clone(m.common)
	for _, p := range m.parts {
		all = append(all, p.handlers...)
	}
	return all
}

// reconcile lets one of the controllers handle a request, and reports whether one did.
func (m *manager) reconcile(r *rand.Rand) bool {
	if m.dead {
		return false
	}
	for _, at := range r.Perm(len(m.parts)) {
		p := m.parts[at]
		if m.busy[p.name] || !p.ready() {
			continue
		}
		next, found := p.queue.pop(r)
		if !found {
			continue
		}
		if m.busy[p.name] = true; p.name == "release" {
			m.seen = m.cache.objects(pods)
		}
		result, err := p.do.Reconcile(log.IntoContext(m.world.ctx, logr.Discard()), next)
		delete(m.busy, p.name)
		m.world.trace("%s: %s %s: %s %v", m.name, p.name, next.String(), result.RequeueAfter, err)
		p.queue.handled(next, result, err)
		return true
	}
	return false
}

// wake returns when a request is ready, or zero.
func (m *manager) wake() time.Time {
	var first time.Time
	for _, p := range m.parts {
		if at := p.queue.next(); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

var (
	// errLost is the error of a request whose response is lost, or which has not reached the API server.
	errLost = errors.New("connection reset by peer")
	// errDead is the error of every request of a process that has ended.
	errDead = errors.New("the process has ended")
)

// call sends a request with the faults of the run.
func (m *manager) call(verb string, k kind, key types.NamespacedName, do func() (client.Object, error)) (client.Object, error) {
	w := m.world
	w.between()
	if m.dead {
		return nil, errDead
	}
	fault := w.fault()
	w.trace("%s: %s %s %s%s", m.name, verb, k, key, fault)
	switch fault {
	case refused:
		return nil, w.refusal()
	case unreachable:
		return nil, errLost
	case crashBefore:
		m.kill()
		return nil, errDead
	}
	before := w.server.Version
	stored, err := do()
	if err != nil {
		w.trace("  %v", err)
	}
	if w.strict && w.server.Version == before {
		w.fail(fmt.Errorf("%s decides from an old state: %s %s %s changes nothing: %w", m.name, verb, k, key.Name, err))
	}
	w.between()
	switch {
	case fault == crashAfter:
		m.kill()
		return nil, errDead
	case m.dead:
		return nil, errDead
	case fault == lost:
		return nil, errLost
	}
	return stored, err
}

// host is the manager of controller-runtime: it collects the controllers instead of running them.
type host struct {
	ctrlmanager.Manager
	manager     *manager
	controllers []ctrlmanager.Runnable
	others      []ctrlmanager.Runnable
}

// Add collects a controller or another part of the program.
func (h *host) Add(r ctrlmanager.Runnable) error {
	if _, isController := r.(reconcile.Reconciler); isController && reflect.ValueOf(r).Elem().FieldByName("NewQueue").IsValid() {
		h.controllers = append(h.controllers, r)
	} else {
		h.others = append(h.others, r)
	}
	return nil
}

// GetControllerOptions allows names to repeat.
func (*host) GetControllerOptions() config.Controller {
	skip := true
	return config.Controller{SkipNameValidation: &skip, Logger: logr.Discard()}
}

// GetLogger returns a logger that discards everything.
func (*host) GetLogger() logr.Logger { return logr.Discard() }

// GetCache returns the cache.
func (h *host) GetCache() cache.Cache { return h.manager.cache }

// GetClient returns the client.
func (h *host) GetClient() client.Client { return objectClient{manager: h.manager} }

// GetAPIReader returns a reader of the API server.
func (h *host) GetAPIReader() client.Reader { return objectClient{manager: h.manager} }

// GetScheme returns an empty scheme.
func (*host) GetScheme() *runtime.Scheme { return runtime.NewScheme() }

// Elected never ends.
func (*host) Elected() <-chan struct{} { return nil }
