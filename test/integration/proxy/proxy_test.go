// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/seamark-dev/seamark/test/chaos/proxy"
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
