// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

func TestMain(m *testing.M) {
	// The default handlers wait until the time of the last error, which is that of the machine or of another bubble of synctest.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}

// server is a fake API server whose requests fail as the test decides.
type server struct {
	mu sync.Mutex
	// fail returns the error of a request, or nil.
	fail func(verb string, list client.ObjectList) error
	// watches are the open watches of pods.
	watches []*watch.FakeWatcher
}

func (s *server) failure(verb string, list client.ObjectList) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail == nil {
		return nil
	}
	return s.fail(verb, list)
}

func (s *server) setFailure(fail func(verb string, list client.ObjectList) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

// send sends an event to the open watch of pods.
func (s *server) send(send func(w *watch.FakeWatcher)) {
	s.mu.Lock()
	w := s.watches[len(s.watches)-1]
	s.mu.Unlock()
	send(w)
}

func (s *server) client(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	return fakeapi.Client(t, objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return errors.Join(s.failure("list", list), c.List(ctx, list, options...))
		},
		Watch: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
			if err := s.failure("watch", list); err != nil {
				return nil, err
			}
			w := watch.NewFake()
			if _, isPods := list.(*corev1.PodList); isPods {
				s.mu.Lock()
				s.watches = append(s.watches, w)
				s.mu.Unlock()
			}
			return w, nil
		},
	}).Build()
}

func start(t *testing.T, s *server) (w *Watch, notices chan string) {
	t.Helper()
	notices = make(chan string, 10)
	marker := builders.Marker("games", "game").Probe(builders.Probe("idle").Condition("game.io/idle")).Build()
	pod := builders.Pod("games", "game-0").Label("app", "game").Build()
	w, err := Start(t.Context(), s.client(t, marker, pod), cluster.Query{Namespace: "games"}, func(line string) { notices <- line })
	expect.NoError(t, err)
	t.Cleanup(w.Stop)
	return w, notices
}

func pods(changes []Change) []string {
	var names []string
	for _, c := range changes {
		if c.New != nil {
			names = append(names, "+"+c.New.Pod)
		} else {
			names = append(names, "-"+c.Old.Pod)
		}
	}
	return names
}

func TestStart(t *testing.T) {
	s := &server{}
	w, _ := start(t, s)
	changes, states := w.Update()
	if diff := cmp.Diff([]string{"+game-0"}, pods(changes)); diff != "" || len(states.Rows) != 1 {
		t.Errorf("first rows (-want +got):\n%s", diff)
	}
	<-w.Changed()
	another := builders.Pod("games", "game-1").Label("app", "game").Build()
	s.send(func(w *watch.FakeWatcher) { w.Add(another) })
	<-w.Changed()
	s.send(func(w *watch.FakeWatcher) { w.Delete(builders.Pod("games", "game-0").Label("app", "game").Build()) })
	<-w.Changed()
	changes, _ = w.Update()
	expect.Equal(t, "changes", []string{"-game-0", "+game-1"}, pods(changes))
	if rows := w.Rows(); len(rows) != 1 || rows[0].Pod != "game-1" {
		t.Errorf("rows %+v", rows)
	}
}

// forbid returns errors for the requests of a verb for all resources but pods and markers.
func forbid(verbs ...string) func(verb string, list client.ObjectList) error {
	return func(verb string, list client.ObjectList) error {
		kind := list.GetObjectKind().GroupVersionKind().Kind
		if _, isPods := list.(*corev1.PodList); isPods || strings.HasPrefix(kind, "PodProbeMarker") {
			return nil
		}
		for _, v := range verbs {
			if v == verb {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no role"))
			}
		}
		return nil
	}
}

func TestStartWithMissingPermissions(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		w, _ := start(t, &server{fail: forbid(verb)})
		snapshot := w.Snapshot()
		if !snapshot.NodesUnread || !snapshot.PlansUnread || !snapshot.ReportsUnread {
			t.Errorf("%s: missing are %v", verb, snapshot.Missing)
		}
		if want := "no permission to " + verb + " probereports.seamark.dev in the cluster"; !strings.HasPrefix(snapshot.Hint(), want) {
			t.Errorf("hint %q, want %q", snapshot.Hint(), want)
		}
	}
}

// An error before everything is read ends the start.
func TestStartFails(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		s := &server{fail: func(v string, list client.ObjectList) error {
			if _, isPods := list.(*corev1.PodList); isPods && v == verb {
				return errors.New("connection refused")
			}
			return nil
		}}
		w, err := Start(t.Context(), s.client(t), cluster.Query{}, func(string) {})
		if w != nil || exit.Code(err) != exit.Access || !strings.Contains(err.Error(), verb+" pods of the cluster: connection refused") {
			t.Errorf("%s: error %v with exit code %d", verb, err, exit.Code(err))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, (&server{}).client(t), cluster.Query{}, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after a cancel", err)
	}
}

// An outage is reported once, and so is its end. An expired watch lists again.
func TestNotices(t *testing.T) {
	s := &server{}
	w, notices := start(t, s)
	w.Update()
	s.setFailure(func(_ string, list client.ObjectList) error {
		if _, isPods := list.(*corev1.PodList); isPods {
			return errors.New("connection refused")
		}
		return nil
	})
	s.send(func(w *watch.FakeWatcher) { w.Stop() })
	expect.Equal(t, "notice", "Warning: the watch of pods is interrupted, trying again: connection refused", <-notices)
	s.setFailure(nil)
	expect.Equal(t, "notice", "Watching again.", <-notices)
	expired := &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired}
	s.send(func(w *watch.FakeWatcher) { w.Error(expired) })
	expect.Equal(t, "notice", "The watch of pods had ended: all of them were read again.", <-notices)
	if changes, _ := w.Update(); len(changes) > 0 {
		t.Errorf("changes %v after a list of the same objects", pods(changes))
	}
}

// An outage is reported while Await waits. It is an error if it lasts until the deadline.
func TestAwaitDuringOutage(t *testing.T) {
	const begin = "Warning: the watch of pods is interrupted, trying again: connection refused"
	for name, test := range map[string]struct {
		ends    bool
		notices []string
		code    int
	}{
		"until the deadline": {false, []string{begin}, exit.Access},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, signal := &server{}, NewSignal()
				store := NewCollection(signal, All, func(pod *corev1.Pod) *corev1.Pod { return pod }, signal.Touch)
				sources := []Resource{ResourceOf(permission.Pods, "games", &corev1.PodList{}, store)}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var notices []string
				var begins sync.Once
				err := signal.Await(ctx, s.client(t), sources, nil, func(line string) {
					if notices = append(notices, line); test.ends {
						s.setFailure(nil)
					}
				}, func() (bool, error) {
					begins.Do(func() {
						s.setFailure(func(string, client.ObjectList) error { return errors.New("connection refused") })
						s.send(func(w *watch.FakeWatcher) { w.Stop() })
					})
					return false, nil
				})
				if code := exit.Code(err); code != test.code || !slices.Equal(notices, test.notices) {
					t.Errorf("error %v with exit code %d, and notices %q", err, code, notices)
				}
			})
		})
	}
}
