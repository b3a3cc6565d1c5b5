// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy_test runs clients of client-go through the proxy that injects faults, against a real API
// server.
package proxy_test

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/chaos/proxy"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// shared is the API server of the package. Each test has a namespace and a proxy.
var shared *env.Env

func TestMain(m *testing.M) { env.Main(m, &shared, env.NoCRDs()) }

// world is a namespace with a service account that may do everything with its config maps.
type world struct {
	*env.World
	proxy  *proxy.Proxy
	token  string
	format string
}

// program is a client with an informer of the config maps.
type program struct {
	*world
	maps typedv1.ConfigMapInterface
	// all are the clients of the program.
	all kubernetes.Interface

	mu sync.Mutex
	// seen are the names in the order in which the informer saw the objects, and seenAt is when.
	seen   []string
	seenAt map[string]time.Time
}

func newWorld(t *testing.T, format string) *world {
	t.Helper()
	w := &world{World: env.NewWorld(t, shared), format: format}
	w.token = shared.ServiceAccount(t, w.Namespace, "program", nil).BearerToken
	shared.Grant(t, w.Namespace, env.ServiceAccountSubject(w.Namespace, "program"),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}})
	p, err := proxy.New(proxy.Options{Upstream: shared.Config, Seed: 1})
	w.Must(err)
	w.proxy = p
	t.Cleanup(func() { w.Must(p.Close()) })
	return w
}

// config returns the configuration of a client with the name.
func (w *world) config(name string) *rest.Config {
	w.Helper()
	config, err := w.proxy.Config(name)
	w.Must(err)
	config.BearerToken, config.ContentType, config.AcceptContentTypes = w.token, w.format, w.format
	config.UserAgent = name + "/v1"
	return config
}

// start starts a program with the name, which stops when the test ends.
func (w *world) start(name string) *program {
	w.Helper()
	all, err := kubernetes.NewForConfig(w.config(name))
	w.Must(err)
	p := &program{world: w, all: all, maps: all.CoreV1().ConfigMaps(w.Namespace), seenAt: map[string]time.Time{}}
	factory := informers.NewSharedInformerFactoryWithOptions(all, 0, informers.WithNamespace(w.Namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		name := object.(*corev1.ConfigMap).Name
		p.seen, p.seenAt[name] = append(p.seen, name), time.Now()
	}})
	w.Must(err)
	ctx, cancel := context.WithCancel(w.Context())
	factory.StartWithContext(ctx)
	w.Cleanup(func() { cancel(); factory.Shutdown() })
	w.Until("the informer of "+name, func() error { return await.ErrorIf(!informer.HasSynced(), "not synced") })
	return p
}

// add creates a config map without the proxy.
func (w *world) add(name string) {
	w.Helper()
	w.Create(&corev1.ConfigMap{ObjectMeta: w.Meta(name)})
}

// exists reports whether the API server has the config map.
func (w *world) exists(name string) bool {
	w.Helper()
	err := shared.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, &corev1.ConfigMap{})
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	return err == nil
}

// set sets faults.
func (w *world) set(faults ...proxy.Fault) {
	w.Helper()
	w.Must(w.proxy.Set(faults...))
}

// injected waits until a fault was injected so often.
func (w *world) injected(kind proxy.Kind, hits int) {
	w.Helper()
	w.Until(string(kind), func() error {
		got := w.proxy.Counts()
		return await.ErrorIf(got[kind].Hits < hits, "%v", got)
	})
}

// sees waits until the informer saw the config map.
func (p *program) sees(name string) {
	p.Helper()
	p.Until("the informer sees "+name, func() error { return await.ErrorIf(!p.hasSeen(name), "not yet") })
}

// hasSeen reports whether the informer saw the config map.
func (p *program) hasSeen(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.seenAt[name].IsZero()
}

// newMap returns a config map that a program creates.
func newMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// eachFormat runs a test with the formats of client-go.
func eachFormat(t *testing.T, test func(*world)) {
	t.Helper()
	for name, format := range map[string]string{"JSON": runtime.ContentTypeJSON, "protobuf": runtime.ContentTypeProtobuf} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, format))
		})
	}
}
