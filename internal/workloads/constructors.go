// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/startup"
	broadcastjob "github.com/seamark-dev/seamark/internal/workloads/broadcastjob/controller"
	"github.com/seamark-dev/seamark/internal/workloads/cloneset"
	advancedcronjob "github.com/seamark-dev/seamark/internal/workloads/cronjob/controller"
	"github.com/seamark-dev/seamark/internal/workloads/daemonset"
	imagepulljob "github.com/seamark-dev/seamark/internal/workloads/imagepull/controller"
	"github.com/seamark-dev/seamark/internal/workloads/nodejob"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/certificates"
	sidecarset "github.com/seamark-dev/seamark/internal/workloads/sidecar/controller"
	"github.com/seamark-dev/seamark/internal/workloads/statefulset"
)

// httpsPort is the port of the Service of the injectors.
const httpsPort = 443

// controller is the controller of a kind.
type controller interface {
	// Add runs it under the manager, with at most concurrency objects at a time.
	Add(mgr ctrlmanager.Manager, informers cache.Cache, concurrency int) error
}

// constructor returns the controller of a kind. The options have the informer of its objects.
type constructor func(ctx context.Context, options reconciler.Options) (controller, error)

// readsNodes reports whether the planner of a kind reads nodes.
func readsNodes(kind kinds.Kind) bool { return kind.PerNode || kind.Kind == cloneset.Kind().Kind }

// constructors returns how the controller of each kind is created.
func (w *Workloads) constructors(mgr ctrlmanager.Manager) map[string]constructor {
	return map[string]constructor{
		"CloneSet": func(ctx context.Context, options reconciler.Options) (_ controller, err error) {
			options.Stores.Pulls, err = w.pulls(ctx, mgr, w.options.PreDownloadInPlace)
			return reconciler.New(cloneset.Set(w.options.RecreateForClaims), options), err
		},
		"StatefulSet": func(ctx context.Context, options reconciler.Options) (_ controller, err error) {
			options.Stores.Pulls, err = w.pulls(ctx, mgr, w.options.PreDownloadInPlace)
			return reconciler.New(statefulset.Set(), options), err
		},
		"DaemonSet": func(ctx context.Context, options reconciler.Options) (_ controller, err error) {
			options.Stores.Pulls, err = w.pulls(ctx, mgr, w.options.PreDownloadDaemonSets)
			slots := daemonset.NewSlots(daemonset.Cache{
				Nodes:   func() []*corev1.Node { return reconciler.All[*corev1.Node](options.Stores.Nodes) },
				Pods:    func(set owner.Key) []*corev1.Pod { return reconciler.Controlled[*corev1.Pod](options.Stores.Pods, set) },
				Version: func() string { return options.Stores.Pods.GetIndexer().LastStoreSyncResourceVersion() },
			})
			return reconciler.New(daemonset.Set(slots), options), err
		},
		"SidecarSet": func(ctx context.Context, options reconciler.Options) (controller, error) {
			return w.sidecarSets(ctx, mgr, options)
		},
		"AdvancedCronJob": func(ctx context.Context, options reconciler.Options) (_ controller, err error) {
			crons := advancedcronjob.Options{Options: options, Live: options.Live}
			if crons.Jobs, err = startup.NewStore(ctx, mgr.GetCache(), &batchv1.Job{}, reconciler.ControllerIndexers()); err != nil {
				return nil, err
			}
			if *w.options.Controllers.BroadcastJob.Enabled {
				crons.BroadcastJobs, err = startup.NewStore(ctx, mgr.GetCache(), &v1alpha1.BroadcastJob{}, nil)
			}
			return advancedcronjob.New(crons), err
		},
		"BroadcastJob": func(_ context.Context, options reconciler.Options) (controller, error) {
			return broadcastjob.New(nodejob.Options{Options: options, Live: options.Live}), nil
		},
		"ImagePullJob": func(_ context.Context, options reconciler.Options) (controller, error) {
			limits := w.options.ImagePull
			allowed, err := metav1.LabelSelectorAsSelector(limits.NodeSelector)
			if err != nil {
				return nil, fmt.Errorf("imagePull.nodeSelector: %w", err)
			}
			return imagepulljob.New(
				nodejob.Options{Options: options, Live: options.Live},
				imagepulljob.Limits{Allowed: allowed, PerNode: int(limits.PerNode), Total: int(limits.Total)},
			), nil
		},
	}
}

// caches returns the options of the cache: what the enabled kinds read decides what it keeps of pods and nodes.
func (w *Workloads) caches() cache.Options {
	return caches(ownKinds(), *w.options.Controllers.SidecarSet.Enabled, *w.options.Controllers.ImagePullJob.Enabled)
}

// pulls returns the informer of ImagePullJobs for a kind whose images are pulled before updates, or nil.
func (w *Workloads) pulls(ctx context.Context, mgr ctrlmanager.Manager, wanted bool) (reconciler.Store, error) {
	if !wanted || !*w.options.Controllers.ImagePullJob.Enabled {
		return nil, nil
	}
	return startup.NewStore(ctx, mgr.GetCache(), &v1alpha1.ImagePullJob{}, nil)
}

// sidecarSets returns the controller of SidecarSets.
func (w *Workloads) sidecarSets(ctx context.Context, mgr ctrlmanager.Manager, shared reconciler.Options) (controller, error) {
	options := sidecarset.Options{
		Revisions: shared.Stores.Revisions, Budgets: shared.Stores.Budgets, Pause: shared.Pause, Client: shared.Client, Live: shared.Live,
		Executor: shared.Executor, Recorder: shared.Recorder, Metrics: shared.Metrics, Now: shared.Now, Address: w.injectors(), Namespace: w.options.Namespace,
		ExcludedNamespaces: w.options.ExcludedNamespaces, DefaultAllowed: w.options.MetadataAllowed, Maps: map[string]cache.Cache{},
	}
	for _, informer := range []struct {
		object  client.Object
		store   *reconciler.Store
		indexes toolscache.Indexers
	}{
		{&v1alpha1.SidecarSet{}, &options.Sets, sidecarset.SetIndexers()},
		{object: &admissionregistrationv1.MutatingWebhookConfiguration{}, store: &options.Configurations},
		{object: newNamespace(), store: &options.Namespaces},
		{&corev1.Pod{}, &options.Pods, sidecarset.PodIndexers()},
	} {
		store, err := startup.NewStore(ctx, mgr.GetCache(), informer.object, informer.indexes)
		if err != nil {
			return nil, err
		}
		*informer.store = store
	}
	for _, name := range []string{sidecarset.ConfigurationName, certificates.BundleName} {
		var err error
		if options.Maps[name], err = addMapCache(ctx, mgr, w.options.Namespace, name); err != nil {
			return nil, err
		}
	}
	return sidecarset.New(options), nil
}

// injectors returns where the API server reaches the injectors.
func (w *Workloads) injectors() admissionregistrationv1.WebhookClientConfig {
	if url := w.options.InjectorURL; url != "" {
		return admissionregistrationv1.WebhookClientConfig{URL: &url}
	}
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
		Namespace: w.options.Namespace, Name: certificates.Name, Port: new(int32(httpsPort)),
	}}
}
