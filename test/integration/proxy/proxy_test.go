// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy_test runs clients of client-go through the proxy that injects faults, against a real API
// server.
package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
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

// isReset reports whether a connection was reset. A write that fails can turn the reset into an EOF.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// TestRights checks that the API server decides with the token of the client.
func TestRights(t *testing.T) {
	t.Parallel()
	p := newWorld(t, "").start("program")
	if _, err := p.all.CoreV1().Secrets(p.Namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the error is %v", err)
	}
	if len(p.proxy.Counts()) != 0 {
		t.Errorf("faults were injected: %v", p.proxy.Counts())
	}
}

// TestDown cuts one of two programs off.
func TestDown(t *testing.T) {
	t.Parallel()
	eachFormat(t, func(w *world) {
		cut, other := w.start("cut"), w.start("other")
		w.set(proxy.Fault{Kind: proxy.Down, Match: proxy.Match{Clients: []string{"cut"}}})
		w.injected(proxy.Down, 2)
		w.add("a")
		other.sees("a")
		if _, err := cut.maps.Create(w.Context(), newMap("b"), metav1.CreateOptions{}); !isReset(err) {
			w.Errorf("the error of a write is %v", err)
		}
		if cut.hasSeen("a") || w.exists("b") {
			w.Error("a program that is cut off reads or writes")
		}
		w.proxy.Clear()
		cut.sees("a")
	})
}

func TestDelay(t *testing.T) {
	t.Parallel()
	eachFormat(t, func(w *world) {
		p := w.start("program")
		w.set(proxy.Fault{Kind: proxy.Delay, Delay: 200 * time.Millisecond})
		start := time.Now()
		if _, err := p.maps.Create(w.Context(), newMap("a"), metav1.CreateOptions{}); err != nil || time.Since(start) < 200*time.Millisecond {
			w.Errorf("a write took %s, %v", time.Since(start), err)
		}
		p.sees("a")
	})
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	eachFormat(t, func(w *world) {
		p := w.start("program")
		for code, is := range map[int]func(error) bool{
			http.StatusTooManyRequests: apierrors.IsTooManyRequests, http.StatusInternalServerError: apierrors.IsInternalError,
			http.StatusServiceUnavailable: apierrors.IsServiceUnavailable,
		} {
			w.set(proxy.Fault{Kind: proxy.Refuse, Code: code})
			if _, err := p.maps.Create(w.Context(), newMap("refused"), metav1.CreateOptions{}); !is(err) {
				w.Errorf("the error is %v, want %d", err, code)
			}
		}
		if w.exists("refused") {
			w.Error("a write that is refused took effect")
		}
		// client-go repeats a request that may be repeated.
		w.set(proxy.Fault{Kind: proxy.Refuse, Code: http.StatusTooManyRequests, RetryAfter: 1})
		done := make(chan error)
		go func() {
			_, err := p.maps.Create(w.Context(), newMap("a"), metav1.CreateOptions{})
			done <- err
		}()
		w.injected(proxy.Refuse, 4)
		w.proxy.Clear()
		w.Must(<-done)
		p.sees("a")
	})
}

// TestLoseResponse checks that one in some writes takes effect and fails.
func TestLoseResponse(t *testing.T) {
	t.Parallel()
	eachFormat(t, func(w *world) {
		p := w.start("program")
		w.set(proxy.Fault{Kind: proxy.LoseResponse, Match: proxy.Match{Resources: []string{"configmaps"}, OneIn: 3}})
		failed := 0
		for i := range 20 {
			name := fmt.Sprintf("a-%d", i)
			_, err := p.maps.Create(w.Context(), newMap(name), metav1.CreateOptions{})
			if err != nil {
				failed++
				if !isReset(err) {
					w.Errorf("the error is %v", err)
				}
			}
			if !w.exists(name) {
				w.Errorf("%s was not created", name)
			}
		}
		if hits := w.proxy.Counts()[proxy.LoseResponse].Hits; hits != failed || failed == 0 || failed == 20 {
			w.Errorf("%d responses were lost, and %d writes failed", hits, failed)
		}
		w.proxy.Clear()
		for i := range 20 {
			p.sees(fmt.Sprintf("a-%d", i))
		}
	})
}

// TestWatches checks that an informer misses nothing while and after its watches are disturbed.
func TestWatches(t *testing.T) {
	t.Parallel()
	for kind, fault := range map[string]proxy.Fault{
		"cut": {Kind: proxy.CutWatches}, "end": {Kind: proxy.EndWatches, After: 20 * time.Millisecond}, "expire": {Kind: proxy.Expire},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			eachFormat(t, func(w *world) {
				p := w.start("program")
				w.set(fault)
				w.add("a")
				w.injected(fault.Kind, 1)
				switch fault.Kind {
				case proxy.CutWatches:
					if p.hasSeen("a") {
						w.Error("the informer saw an event of which it got a half")
					}
				case proxy.Expire:
					// An informer reports no such error.
					watcher, err := p.maps.Watch(w.Context(), metav1.ListOptions{ResourceVersion: "1"})
					w.Must(err)
					if event := <-watcher.ResultChan(); event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
						w.Errorf("the event of a watch is %v", event)
					}
					watcher.Stop()
					_, err = p.maps.List(w.Context(), metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchExact})
					if !apierrors.IsResourceExpired(err) {
						w.Errorf("the error of a list is %v", err)
					}
				}
				w.proxy.Clear()
				w.add("b")
				p.sees("a")
				p.sees("b")
			})
		})
	}
}

// TestDelayWatches checks that events arrive late and in order, and other requests do not.
func TestDelayWatches(t *testing.T) {
	t.Parallel()
	eachFormat(t, func(w *world) {
		p := w.start("program")
		const late = 500 * time.Millisecond
		w.set(proxy.Fault{Kind: proxy.DelayWatches, Delay: late})
		var names []string
		created := map[string]time.Time{}
		for i := range 3 {
			name := fmt.Sprintf("a-%d", i)
			names, created[name] = append(names, name), time.Now()
			w.add(name)
		}
		for _, name := range names {
			p.sees(name)
		}
		p.mu.Lock()
		seen := slices.DeleteFunc(slices.Clone(p.seen), func(name string) bool { return !slices.Contains(names, name) })
		if !slices.Equal(seen, names) {
			w.Errorf("the informer saw %v, want %v", seen, names)
		}
		for _, name := range names {
			if age := p.seenAt[name].Sub(created[name]); age < late {
				w.Errorf("the informer saw %s after %s", name, age)
			}
		}
		p.mu.Unlock()

		w.set(proxy.Fault{Kind: proxy.DelayWatches, Delay: proxy.MaxDuration})
		w.add("b")
		w.injected(proxy.DelayWatches, 2)
		ctx, cancel := context.WithTimeout(w.Context(), proxy.MaxDuration/2)
		defer cancel()
		if _, err := p.maps.Get(ctx, "b", metav1.GetOptions{}); err != nil || p.hasSeen("b") {
			w.Errorf("a read returns %v, and the informer saw the object: %t", err, p.hasSeen("b"))
		}
		w.proxy.Clear()
		p.sees("b")
	})
}

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
