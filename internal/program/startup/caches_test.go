// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestOneCacheNeverSyncs runs a manager that may not list CloneSets. Its health check says so, and it ends with its
// context.
func TestOneCacheNeverSyncs(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		switch {
		case strings.HasSuffix(r.URL.Path, "/clonesets"):
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"clonesets is forbidden: no right\u202e"}`))
		case r.URL.Query().Get("watch") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
		default:
			_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`))
		}
	}))
	defer server.Close()
	p, err := New(&rest.Config{Host: server.URL}, logr.Discard(), Addresses{}, nil)
	expect.NoError(t, err)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion().WithKind("CloneSet"), meta.RESTScopeNamespace)
	p.crds.mapper = mapper
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, p.assembleForTest) }()
	const want = "not synced: clonesets.apps.kruise.io (clonesets is forbidden: no right\\u202e)"
	for {
		if err := p.caches.unready(nil); err != nil && err.Error() == want {
			break
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case err := <-ended:
			t.Fatalf("the program ended: %v", err)
		case <-t.Context().Done():
			t.Fatal(p.caches.unready(nil))
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the program ended with the error %v", err)
	}
}

func (p *Program) assembleForTest(ctx context.Context) (ctrlmanager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	mgr, err := p.Manager(ctrlmanager.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	for _, object := range []client.Object{&corev1.Pod{}, &v1alpha1.CloneSet{}} {
		if _, err := NewStore(ctx, mgr.GetCache(), object, nil); err != nil {
			return nil, err
		}
	}
	return mgr, nil
}
