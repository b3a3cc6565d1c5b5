// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/internal/program/decoding"
	"github.com/seamark-dev/seamark/internal/program/isolate"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	// maxReason bounds the error of a cache in the answer of the health check, in bytes.
	maxReason = 300
	// maxMissing bounds the number of these caches.
	maxMissing = 8
)

// caches knows which caches of a program are not synced, and why.
type caches struct {
	synced atomic.Bool
	// all is the cache of the manager.
	all cache.Cache

	mu    sync.Mutex
	known []*cached
}

// cached is the cache of a resource.
type cached struct {
	resource string
	synced   func() bool
	// last is the error of the last request, nil if it succeeded or there was none.
	last atomic.Pointer[string]
}

func (c *cached) note(err error) {
	if err == nil {
		c.last.Store(nil)
		return
	}
	c.last.Store(new(text.Truncate(text.Line(err.Error()), maxReason)))
}

// add adds a cache.
func (c *caches) add(resource string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := &cached{resource: resource, synced: func() bool { return false }}
	c.known = append(c.known, added)
	return added
}

// unready returns which caches are not synced.
func (c *caches) unready(*http.Request) error {
	if c.synced.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var missing []string
	for _, each := range c.known {
		if each.synced() {
			continue
		}
		reason := "not listed yet"
		if last := each.last.Load(); last != nil {
			reason = *last
		}
		missing = append(missing, each.resource+" ("+reason+")")
	}
	if len(missing) == 0 {
		return errors.New("not synced")
	}
	slices.Sort(missing)
	if more := len(missing) - maxMissing; more > 0 {
		missing = append(missing[:maxMissing], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("not synced: %s", strings.Join(missing, ", "))
}

// follow makes the cache of a manager isolate custom resources, follow its informers, and not hold up the end.
func (p *Program) follow(options *ctrlmanager.Options) error {
	server := decoding.Server{Config: p.Config, HTTP: p.crds.client, Scheme: options.Scheme, Mapper: p.crds.mapper}
	if err := wholeKinds(options); err != nil {
		return err
	}
	options.Cache.NewInformer = func(source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		custom, err := server.Source(object)
		switch {
		case err != nil:
			// The cache has found the resource before.
			p.log.Error(err, "Objects that cannot be decoded are not isolated", "type", fmt.Sprintf("%T", object))
		case custom != nil:
			source = custom
		}
		known := p.caches.add(p.resourceOf(object, options.Scheme))
		informer := NewInformer(source, object, resync, indexers, known.note)
		p.caches.mu.Lock()
		defer p.caches.mu.Unlock()
		known.synced = informer.HasSynced
		return informer
	}
	options.NewCache = func(config *rest.Config, of cache.Options) (cache.Cache, error) {
		created, err := cache.New(config, of)
		p.caches.all = created
		return &ending{Cache: created, ends: p.ends}, err
	}
	return nil
}

// wholeKinds returns an error if the cache has only some objects of a custom resource: its source has no selectors.
func wholeKinds(options *ctrlmanager.Options) error {
	for object, of := range options.Cache.ByObject {
		kind, err := apiutil.GVKForObject(object, options.Scheme)
		if err == nil && isolate.IsCustom(kind.Group) && (of.Namespaces != nil || of.Label != nil || of.Field != nil) {
			return fmt.Errorf("cache only some objects of %s: not supported for custom resources", kind.Kind)
		}
	}
	if all := options.Cache; all.DefaultNamespaces != nil || all.DefaultLabelSelector != nil || all.DefaultFieldSelector != nil {
		return errors.New("cache only some objects: not supported for custom resources")
	}
	return nil
}

// resourceOf returns the name of the resource of an object.
func (p *Program) resourceOf(object runtime.Object, scheme *runtime.Scheme) string {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	mapping, err := p.crds.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return kind.GroupKind().String()
	}
	return mapping.Resource.GroupResource().String()
}

// ending is a cache that a manager waits for. A manager does not end while it waits for its caches, whatever its
// context: this one stops the wait at the end of the program.
type ending struct {
	cache.Cache
	ends <-chan struct{}
}

// WaitForCacheSync waits until the caches are synced or the program ends.
func (e *ending) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-e.ends:
			cancel()
		case <-ctx.Done():
		}
	}()
	synced := e.Cache.WaitForCacheSync(ctx)
	select {
	case <-e.ends:
		return true
	default:
		return synced
	}
}

// isolating is a manager whose readers isolate objects that cannot be decoded. Its controllers wait until the caches
// are synced, also at the end of the program.
type isolating struct {
	ctrlmanager.Manager
	cache cache.Cache
	live  client.Reader
}

// GetCache returns the cache.
func (m *isolating) GetCache() cache.Cache { return m.cache }

// GetAPIReader returns a reader without a cache.
func (m *isolating) GetAPIReader() client.Reader { return m.live }

// readiness waits until the caches are synced.
type readiness struct {
	cache  cache.Cache
	synced *atomic.Bool
}

// Start waits until the caches are synced.
func (r *readiness) Start(ctx context.Context) error {
	r.synced.Store(r.cache.WaitForCacheSync(ctx))
	<-ctx.Done()
	return nil
}

// NeedLeaderElection returns false: it runs whether or not the program leads.
func (r *readiness) NeedLeaderElection() bool { return false }
