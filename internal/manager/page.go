// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/decoding"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/clustersource"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/internal/web/review"
)

// uiMaxHeader limits the size of the headers of a request to the web page in bytes.
const uiMaxHeader = 64 << 10

// uiEnabled reports whether the manager serves the web page.
func (o Options) uiEnabled() bool { return o.UIBindAddress != "" && o.UIBindAddress != "0" }

// pageServer serves the web page from the manager's caches. It runs in every manager, because the
// caches of all are in sync.
type pageServer struct {
	listener net.Listener
	handler  *web.Handler
}

// addPage adds the server of the web page to the manager.
func addPage(ctx context.Context, mgr ctrlmanager.Manager, options Options) error {
	informers, err := clustersource.InformersOf(ctx, mgr.GetCache(), true)
	if err != nil {
		return fmt.Errorf("serve the web page: %w", err)
	}
	source, err := clustersource.New(informers, options.views(), time.Now)
	if err != nil {
		return fmt.Errorf("serve the web page: %w", err)
	}
	guard, err := newGuard(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	handler := web.New(web.Options{
		Source: source, Guard: guard.Admit, Session: model.Session{Source: model.SourceCluster, Version: options.Version},
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", options.UIBindAddress)
	if err != nil {
		return fmt.Errorf("listen for the web page: %w", err)
	}
	if err := mgr.Add(&pageServer{listener: listener, handler: handler}); err != nil {
		return errors.Join(fmt.Errorf("serve the web page: %w", err), listener.Close())
	}
	return nil
}

// newGuard returns the guard, whose client has no cache.
func newGuard(config *rest.Config, transport *http.Client) (*review.Guard, error) {
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	if err := errors.Join(authenticationv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme), corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("create the scheme of the web page: %w", err)
	}
	mapper.Add(authenticationv1.SchemeGroupVersion.WithKind("TokenReview"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion().WithKind("SidecarSet"), meta.RESTScopeRoot)
	own, err := client.New(config, client.Options{HTTPClient: transport, Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("create the client of the web page: %w", err)
	}
	// The manager may list neither events nor SidecarSets, so it cannot show any that the user may not list.
	as := func(token string) (client.Reader, error) {
		user := rest.AnonymousClientConfig(config)
		user.BearerToken = token
		reader, err := client.New(user, client.Options{Scheme: scheme, Mapper: mapper})
		if err != nil {
			return nil, fmt.Errorf("create a client: %w", err)
		}
		return decoding.Reader{Reader: reader, Scheme: scheme}, nil
	}
	return review.New(own, as), nil
}

// NeedLeaderElection returns false.
func (p *pageServer) NeedLeaderElection() bool { return false }

// Start serves the page until ctx ends.
func (p *pageServer) Start(ctx context.Context) error {
	return web.Serve(ctx, p.listener, p.handler, uiMaxHeader, p.handler.Close)
}
