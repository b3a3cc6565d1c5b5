// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

// discovery answers from the time since its start.
type discovery struct {
	meta.RESTMapper
	start time.Time
	// served is when each kind is served; broken is until when requests fail.
	served map[string]time.Duration
	broken time.Duration
	calls  int
}

func (d *discovery) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	d.calls++
	switch elapsed := time.Since(d.start); {
	case elapsed < d.broken:
		return nil, errors.New("connection refused")
	case elapsed < d.served[kind.Kind]:
		return nil, &meta.NoKindMatchError{GroupKind: kind}
	default:
		return &meta.RESTMapping{}, nil
	}
}

func kinds() []schema.GroupVersionKind {
	kind := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind}
	}
	return []schema.GroupVersionKind{
		kind("apps.kruise.io", "NodePodProbe"), kind("apps.kruise.io", "PodProbeMarker"), kind("seamark.dev", "ProbeReport"),
	}
}

func TestAwaitCRDs(t *testing.T) {
	const waits, ends = `"Waiting for the CRDs"`, `"The API server serves the CRDs"`
	cases := map[string]struct {
		discovery discovery
		// lines are parts of the expected lines. latest is the latest end of the wait, calls is the
		// maximum number of requests.
		lines  []string
		latest time.Duration
		calls  int
	}{
		"served at once": {calls: 3},
		"served later": {
			discovery: discovery{served: map[string]time.Duration{
				"PodProbeMarker": 3 * time.Second, "NodePodProbe": time.Second, "ProbeReport": time.Second,
			}},
			lines: []string{
				"serve nodepodprobes.apps.kruise.io/v1alpha1, podprobemarkers.apps.kruise.io/v1alpha1, probereports.seamark.dev/v1alpha1:",
				"serve podprobemarkers.apps.kruise.io/v1alpha1:", ends,
			},
			latest: 8 * time.Second, calls: 30,
		},
		"served after minutes": {
			discovery: discovery{served: map[string]time.Duration{"PodProbeMarker": 150 * time.Second}},
			lines:     []string{waits, waits, waits, ends},
			latest:    162 * time.Second, calls: 90,
		},
		"API server comes later": {
			discovery: discovery{broken: time.Second},
			lines:     []string{"connection refused", ends},
			latest:    3 * time.Second, calls: 30,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
				tc.discovery.start = time.Now()
				c := &crds{mapper: &tc.discovery, kinds: kinds(), log: log}
				if !c.await(t.Context()) {
					t.Fatal("stopped waiting")
				}
				if took := time.Since(tc.discovery.start); took > tc.latest {
					t.Errorf("waited for %s, want at most %s", took, tc.latest)
				}
				if tc.discovery.calls > tc.calls {
					t.Errorf("%d requests, want at most %d", tc.discovery.calls, tc.calls)
				}
				if err := c.unready(nil); err != nil {
					t.Errorf("not ready after the wait: %v", err)
				}
				if len(lines) != len(tc.lines) {
					t.Fatalf("log:\n%s\nwant %d lines", strings.Join(lines, "\n"), len(tc.lines))
				}
				for i, part := range tc.lines {
					if !strings.Contains(lines[i], part) {
						t.Errorf("line %d is %q, want %q in it", i, lines[i], part)
					}
				}
			})
		})
	}
}

func TestAwaitCRDsUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := &crds{kinds: kinds(), mapper: &discovery{start: time.Now(), broken: time.Hour}, log: funcr.New(func(_, _ string) {}, funcr.Options{})}
		if c.await(ctx) {
			t.Error("the wait ends although the API server does not answer")
		}
		if err := c.unready(nil); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("not ready because of %v, want the error of the API server", err)
		}
	})
}

func TestAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer taken.Close()
	address := taken.Addr().String()
	for field, addresses := range map[string]Addresses{
		"health.bindAddress":  {Health: address},
		"metrics.bindAddress": {Health: "127.0.0.1:0", Metrics: address},
		"pprof.bindAddress":   {Health: "0", Profiles: address},
	} {
		if _, err := New(&rest.Config{}, logr.Discard(), addresses, nil); err == nil || !strings.Contains(err.Error(), field+` "`+address) {
			t.Errorf("error %v, want one that names %s and %s", err, field, address)
		}
	}
}

// TestOneCacheNeverSyncs runs a manager that may not list CloneSets. Its health check says so, and it ends with its
// context.
func TestOneCacheNeverSyncs(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		switch {
		case strings.HasSuffix(r.URL.Path, "/clonesets"):
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"clonesets is forbidden: no right\u202e"}`,
			))
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
	expect.NoError(t, <-ended)
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

// TestInformerContinues runs an informer whose API server does not serve it for a time. A pod is created at the end of
// this time.
func TestInformerContinues(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{
		"the API server is down":        fmt.Errorf("connect: %w", syscall.ECONNREFUSED),
		"the API server is overloaded":  apierrors.NewTooManyRequests("later", 0),
		"watches expire after a second": nil,
	} {
		for _, lasts := range []time.Duration{time.Second, 14 * time.Second, 50 * time.Second, 10 * time.Minute} {
			for _, from := range []time.Duration{0, time.Hour} {
				for _, expires := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s, after %s, for %s, expired %t", name, from, lasts, expires), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { testContinues(t, fault, from, from+lasts, expires) })
					})
				}
			}
		}
	}
}

// testContinues plays a fault. All watches end when it begins, and cannot be continued if they have expired.
func testContinues(t *testing.T, fault error, from, until time.Duration, expired bool) {
	t.Helper()
	start, lists := time.Now(), 0
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", ResourceVersion: "2"}}
	fails := func() bool { return time.Since(start) >= from && time.Since(start) < until }
	refused := func() error {
		if fails() {
			return fault
		}
		return nil
	}
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			lists++
			pods := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			if time.Since(start) >= until {
				pods.Items = []corev1.Pod{pod}
			}
			return pods, refused()
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			switch err := refused(); {
			case err != nil:
				return nil, err
			case options.SendInitialEvents != nil:
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
			}
			w := watch.NewFakeWithChanSize(2, false)
			ends := time.Second
			if !fails() {
				ends = from - time.Since(start)
			}
			switch {
			case time.Since(start) >= until:
				w.Add(&pod)
			case fails() || expired:
				time.AfterFunc(ends, func() { w.Error(new(apierrors.NewResourceExpired("too old").Status())) })
			default:
				time.AfterFunc(ends, w.Stop)
			}
			return w, nil
		},
	}
	informer := NewInformer(source, &corev1.Pod{}, 0, toolscache.Indexers{}, func(error) {})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	for len(informer.GetIndexer().ListKeys()) == 0 {
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // The time is virtual.
	}
	// A watch may expire after a second, and the longest delay has five.
	if late := time.Since(start) - until; late > 6100*time.Millisecond {
		t.Errorf("the informer has the pod %s after the fault", late)
	}
	cancel()
	<-done
	if from > 0 && fault != nil && !expired && lists > 1 {
		t.Errorf("the informer has listed %d times, want only at its start", lists)
	}
}
