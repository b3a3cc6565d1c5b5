// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// faults are between managers and the API server: writes of marks are refused, lost, late or
// without a response.
type faults struct {
	config *env.Env
	mu     sync.Mutex
	rand   *rand.Rand // nil: no random faults
	denied string
	// killed has a token when a manager is to be killed.
	killed chan struct{}
	late   sync.WaitGroup
}

// start runs a manager behind the faults.
func (f *faults) start(t testing.TB) (stop func()) {
	t.Helper()
	config := f.config.Component(t, manager.Name)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{faults: f, next: next} })
	return program.StartManager(t, manager.Options{Config: config})
}

// deny refuses writes whose path has the part. Empty refuses none.
func (f *faults) deny(part string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denied = part
}

func (f *faults) random(r *rand.Rand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rand = r
}

// next returns what happens to a write.
func (f *faults) next(path string) (denied bool, kind, delay int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind = -1
	if f.rand != nil {
		kind, delay = f.rand.IntN(16), f.rand.IntN(60)
	}
	return f.denied != "" && strings.Contains(path, f.denied), kind, delay
}

type transport struct {
	*faults
	next http.RoundTripper
}

var errLost = errors.New("response is lost")

// RoundTrip sends the request, or what a fault makes of it.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	path := request.URL.Path
	if request.Method != http.MethodPatch || !strings.Contains(path, "/pods/") {
		return t.next.RoundTrip(request)
	}
	denied, kind, delay := t.faults.next(path)
	switch {
	case denied || kind == 0:
		return nil, errLost
	case kind == 1: // The API server gets it, but the manager does not learn of it.
		response, err := t.next.RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return nil, errors.Join(errLost, err)
	case kind == 2 || kind == 3: // It arrives late, perhaps after the manager has ended.
		t.send(request, time.Duration(delay)*time.Millisecond)
		return nil, errLost
	case kind == 4: // The manager is killed between the ticket and the marks, for example.
		response, err := t.next.RoundTrip(request)
		select {
		case t.killed <- struct{}{}:
		default:
		}
		return response, err
	}
	return t.next.RoundTrip(request)
}

// send sends the request after a delay, whether or not its sender waits.
func (t *transport) send(request *http.Request, delay time.Duration) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	late := request.Clone(context.WithoutCancel(request.Context()))
	late.Body, late.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
	t.late.Go(func() {
		timer := time.NewTimer(delay)
		<-timer.C
		if response, err := t.next.RoundTrip(late); err == nil {
			_ = response.Body.Close()
		}
	})
}

// auditor watches all versions of the pods, and finds two of a group with the marks.
type auditor struct {
	w    watch.Interface
	done chan struct{}
	mu   sync.Mutex
	// marked has the groups of the pods with the marks.
	marked  map[string]string
	takes   int
	problem string
}

func audit(w *world) *auditor {
	w.Helper()
	c, err := client.NewWithWatch(w.Config, client.Options{Scheme: w.Client.Scheme()})
	w.Must(err)
	events, err := c.Watch(context.Background(), &corev1.PodList{}, client.InNamespace(w.Namespace))
	w.Must(err)
	a := &auditor{w: events, done: make(chan struct{}), marked: map[string]string{}}
	go a.run()
	return a
}

func (a *auditor) run() {
	defer close(a.done)
	for event := range a.w.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		a.mu.Lock()
		_, annotated := pod.Annotations["db.io/since"]
		now := event.Type != watch.Deleted && (pod.Labels["role"] == "primary" || annotated)
		if _, before := a.marked[pod.Name]; now && !before {
			a.takes++
		}
		delete(a.marked, pod.Name)
		var all []string
		if now {
			group := pod.Labels["shard"]
			a.marked[pod.Name] = group
			for name, of := range a.marked {
				if of == group {
					all = append(all, name)
				}
			}
		}
		if len(all) > 1 && a.problem == "" {
			a.problem = fmt.Sprintf("at resource version %s, pods %v have the marks", pod.ResourceVersion, all)
		}
		a.mu.Unlock()
	}
}

func (a *auditor) stop() (takes int, problem string) {
	a.w.Stop()
	<-a.done
	return a.takes, a.problem
}
