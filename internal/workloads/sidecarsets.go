// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/startup"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/certificates"
	sidecarset "github.com/seamark-dev/seamark/internal/workloads/sidecar/controller"
)

// httpsPort is the port of the Service of the injectors.
const httpsPort = 443

// addSidecarSets adds the controller of SidecarSets, if it is enabled.
func (w *Workloads) addSidecarSets(ctx context.Context, mgr ctrlmanager.Manager, shared reconciler.Options, guard *guard) error {
	enabled := w.options.Controllers.SidecarSet
	if !*enabled.Enabled {
		return nil
	}
	options := sidecarset.Options{
		Revisions: shared.Stores.Revisions, Client: shared.Client, Executor: shared.Executor, Recorder: shared.Recorder, Now: shared.Now,
		Live: mgr.GetAPIReader(), Address: w.injectors(), Namespace: w.options.Namespace,
		ExcludedNamespaces: w.options.ExcludedNamespaces, DefaultAllowed: w.options.MetadataAllowed,
		Maps: map[string]cache.Cache{},
	}
	for _, each := range []struct {
		object  client.Object
		store   *reconciler.Store
		indexes toolscache.Indexers
	}{
		{&v1alpha1.SidecarSet{}, &options.Sets, sidecarset.SetIndexers()},
		{object: &admissionregistrationv1.MutatingWebhookConfiguration{}, store: &options.Configurations},
		{object: newNamespace(), store: &options.Namespaces},
		{&corev1.Pod{}, &options.Pods, sidecarset.PodIndexers()},
	} {
		store, err := startup.NewStore(ctx, mgr.GetCache(), each.object, each.indexes)
		if err != nil {
			return err
		}
		*each.store = store
	}
	for _, name := range []string{sidecarset.ConfigurationName, certificates.BundleName} {
		var err error
		if options.Maps[name], err = addMapCache(ctx, mgr, w.options.Namespace, name); err != nil {
			return err
		}
	}
	options.Gate = reconciler.NewGate()
	guard.gates[sidecarset.Kind().Kind] = options.Gate
	return sidecarset.New(options).Add(mgr, mgr.GetCache(), int(enabled.Concurrency))
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
