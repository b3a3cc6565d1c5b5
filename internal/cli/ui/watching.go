// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/ui/clustersource"
	"github.com/seamark-dev/seamark/internal/program/decoding"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/permission"
	webui "github.com/seamark-dev/seamark/internal/web"
)

// watching are the caches of the namespaces of one scope.
type watching struct {
	*direct
	// ctx ends the caches, by cancel.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	full    bool
	// states has the informers of nodes, plans and reports, which the namespaces share, when the first namespace is watched.
	states clustersource.Informers
}

// open watches a namespace, or all if it is empty. It waits until its caches are filled.
func (w *watching) open(namespace string) (webui.Changes, error) {
	sets, note, err := readableSets(w.ctx, w.connection.Client, namespace)
	if err != nil {
		return nil, err
	}
	// Who may not read budgets sees no guards.
	unread, err := tryToWatch(w.ctx, w.connection.Client, policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), permission.Budgets, namespace)
	if err != nil {
		return nil, err
	}
	caches, err := w.caches(namespace, sets)
	if err != nil {
		return nil, err
	}
	if w.full && w.states.Nodes == nil {
		if err := w.states.AddStates(w.ctx, caches); err != nil {
			return nil, err
		}
	}
	informers := w.states
	informers.SetsNote = note
	if err := informers.AddNamespaced(w.ctx, caches, sets, unread == nil); err != nil {
		return nil, err
	}
	source, err := clustersource.New(informers, cluster.ViewOptions(), w.now)
	if err != nil {
		return nil, err
	}
	w.running.Go(func() {
		// It returns only when ctx ends.
		if err := caches.Start(w.ctx); err != nil {
			w.cancel(err)
		}
	})
	return source.Open(w.ctx, webui.Scope{Namespace: namespace, Full: w.full})
}

// end ends the caches and waits for them.
func (w *watching) end() {
	w.cancel(nil)
	w.running.Wait()
}

// caches returns the caches of a namespace. A watch that the API server refuses ends all caches.
func (w *watching) caches(namespace string, sets []kinds.Kind) (cache.Cache, error) {
	options := w.cacheOptions(namespace, sets)
	options.DefaultWatchErrorHandler = func(ctx context.Context, _ *toolscache.Reflector, err error) { w.failed(ctx, err) }
	server := decoding.Server{Config: w.connection.Config, Scheme: options.Scheme, Mapper: options.Mapper, Namespace: namespace}
	options.NewInformer = func(
		source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		// The cache reports an error itself.
		if custom, err := server.Source(object); err == nil && custom != nil {
			source = custom
		}
		return toolscache.NewSharedIndexInformer(source, object, resync, indexers)
	}
	caches, err := cache.New(w.connection.Config, options)
	if err != nil {
		return nil, fmt.Errorf("create the caches: %w", err)
	}
	return caches, nil
}

// failed ends all watches if the API server refuses one. Other errors are tried again.
func (w *watching) failed(ctx context.Context, err error) {
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		return
	}
	if optional, err := cluster.Try(ctx, w.connection.Client, "", permission.States()...); err == nil {
		w.direct.full.Store(len(optional.Missing) == 0)
	}
	w.cancel(&webui.Refusal{Status: http.StatusForbidden, Message: err.Error()})
}

// readableSets returns the kinds of sets that the user may list and watch in the namespace, or in all if it is empty, and a note that
// names the others. Kinds that are not installed are not named. It lists one object of each kind, and opens a watch without objects.
func readableSets(ctx context.Context, reader client.WithWatch, namespace string) (readable []kinds.Kind, note string, err error) {
	var notes []string
	for _, kind := range clustersource.SetKinds() {
		switch missing, failure := tryToWatch(ctx, reader, kind.GroupVersionKind, permission.Resource(kind.Definition()), namespace); {
		case failure != nil:
			return nil, "", failure
		case missing == nil:
			readable = append(readable, kind)
		case missing.Verb != "":
			notes = append(notes, missing.String())
		}
	}
	return readable, strings.Join(notes, "; "), nil
}

// tryToWatch lists one object of the kind and watches from there. It returns what is missing, or nil.
func tryToWatch(
	ctx context.Context, reader client.WithWatch, kind schema.GroupVersionKind, resource permission.Resource, namespace string,
) (*permission.Missing, error) {
	list := cluster.MetadataList(kind)
	if err := reader.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return cluster.MissingOf(err, "list", resource, namespace)
	}
	since := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	events, err := reader.Watch(ctx, cluster.MetadataList(kind), since, client.InNamespace(namespace))
	if err == nil {
		events.Stop()
	}
	return cluster.MissingOf(err, "watch", resource, namespace)
}
