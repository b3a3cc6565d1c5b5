// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/seamark-dev/seamark/test/expect"
)

// memory is an election in memory.
type memory struct {
	record record
	writes int
	// down makes reads and writes fail.
	down bool
	// updating is a replica that is about to be restarted.
	updating string
}

func (m *memory) electable(_ context.Context, name string, _ bool) (bool, error) {
	return name != m.updating, nil
}

func (m *memory) read(context.Context) (record, error) {
	if m.down {
		return record{}, errors.New("down")
	}
	r := m.record
	r.fresh = r.version == ""
	return r, nil
}

func (m *memory) write(_ context.Context, r record) error {
	switch {
	case m.down:
		return errors.New("down")
	case r.version != m.record.version:
		return errOutdated
	}
	m.writes++
	r.version += "+"
	m.record = r
	return nil
}

var testTiming = timing{lag: 3 * time.Second, settle: 3 * time.Second, lease: 5 * time.Second, retry: time.Second}

// started returns a replica that runs until the returned function is called. The function waits
// for its end.
func started(t *testing.T, name string, e election) (*replica, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := newReplica(name, "v1", testTiming, e, io.Discard)
	done := make(chan struct{})
	go func() { defer close(done); r.run(ctx) }()
	stop := func() { cancel(); <-done }
	t.Cleanup(stop)
	return r, stop
}

// after waits and then checks the roles of replicas: P for a primary, s for a secondary.
func after(t *testing.T, d time.Duration, want string, replicas ...*replica) {
	t.Helper()
	<-time.After(d)
	synctest.Wait()
	got := ""
	for _, r := range replicas {
		s := r.snapshot()
		if s.isPrimary(time.Now()) {
			got += "P"
		} else {
			got += "s"
		}
	}
	expect.Equal(t, fmt.Sprintf("after %s: roles", d), want, got)
}

func TestGracefulHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		a, stop := started(t, "db-0", m)
		after(t, time.Millisecond, "P", a)
		b, _ := started(t, "db-1", m)
		after(t, 10*time.Second, "Ps", a, b)
		stop()
		expect.Equal(t, "holder after SIGTERM", "", m.record.holder)
		after(t, time.Second, "sP", a, b)
		expect.Equal(t, "switches", 1, m.record.switches)
	})
}

// TestCrash checks that a process does not continue as the primary that crashed before it.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{record: record{holder: "db-0", last: "db-0", version: "1"}}
		a, _ := started(t, "db-0", m)
		b, _ := started(t, "db-1", m)
		after(t, time.Millisecond, "ss", a, b)
		if m.record.holder != "" {
			t.Errorf("holder %q, want none after the crash", m.record.holder)
		}
		<-time.After(time.Second)
		if a.snapshot().joined {
			t.Error("a replica that is behind is ready")
		}
		<-time.After(10 * time.Second)
		if got := m.record.holder; got == "" {
			t.Error("no primary")
		}
	})
}

func TestLostPrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{record: record{holder: "db-9", last: "db-9", version: "1"}}
		a, _ := started(t, "db-0", m)
		after(t, 4*time.Second, "s", a)
		after(t, 3*time.Second, "P", a)
		if diff := cmp.Diff("db-0", m.record.last); diff != "" || m.record.switches != 1 {
			t.Errorf("record %+v", m.record)
		}
	})
}

// TestAnnouncedSuccessor checks that the successor is known before the role moves.
func TestAnnouncedSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		a, _ := started(t, "db-0", m)
		synctest.Wait()
		b, _ := started(t, "db-1", m)
		<-time.After(10*time.Second + time.Millisecond)
		m.record.successor = "db-1"
		m.record.version += "x"
		after(t, 2*time.Second, "Ps", a, b)
		if s := b.snapshot(); !s.isSuccessor() {
			t.Error("the successor does not know about it")
		}
		after(t, 3*time.Second, "sP", a, b)
		if m.record.switches != 1 || m.record.successor != "" {
			t.Errorf("record %+v, want one switch and no successor", m.record)
		}
		if s := a.snapshot(); s.behind(time.Now()) == 0 {
			t.Error("the former primary is not behind")
		}
	})
}

// TestUnreachableRecord checks that a primary that cannot renew the record steps down before
// another replica may replace it.
func TestUnreachableRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		a, _ := started(t, "db-0", m)
		after(t, time.Second, "P", a)
		m.down = true
		after(t, 4*time.Second, "s", a)
		m.down = false
		after(t, 2*time.Second, "P", a)
	})
}

// TestUpdatingReplicaIsNotElected checks that a replica that is about to be restarted becomes the
// primary only if there is no other for a long time.
func TestUpdatingReplicaIsNotElected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{updating: "db-1"}
		a, stop := started(t, "db-0", m)
		synctest.Wait()
		b, _ := started(t, "db-1", m)
		<-time.After(10*time.Second + time.Millisecond)
		m.record.successor = "db-1"
		m.record.version += "x"
		after(t, 10*time.Second, "Ps", a, b)
		m.updating = ""
		after(t, 3*time.Second, "sP", a, b)
		stop()
	})
}

func TestElectionWithoutAlternative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{updating: "db-0"}
		a, _ := started(t, "db-0", m)
		after(t, 19*time.Second, "s", a)
		after(t, 3*time.Second, "P", a)
	})
}

func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		a, stop := started(t, "db-0", m)
		<-time.After(2 * time.Second)
		if a.snapshot().joined {
			t.Error("ready before the primary has settled")
		}
		<-time.After(2 * time.Second)
		if !a.snapshot().joined {
			t.Error("not ready after the primary has settled")
		}
		b, _ := started(t, "db-1", m)
		<-time.After(5 * time.Second)
		stop()
		<-time.After(time.Second)
		if !b.snapshot().joined {
			t.Error("a replica that was ready is not ready after a switch")
		}
	})
}

func TestLease(t *testing.T) {
	clientset := fake.NewClientset()
	e := &leaseElection{leases: clientset.CoordinationV1().Leases("ns"), name: "database", duration: 5 * time.Second}
	seen, err := e.read(t.Context())
	if err != nil || !seen.fresh {
		t.Fatalf("first read: %+v, %v", seen, err)
	}
	expect.NoError(t, e.write(t.Context(), seen.give("db-0", time.Unix(7, 0))))
	if err := e.write(t.Context(), seen.give("db-1", time.Unix(8, 0))); !errors.Is(err, errOutdated) {
		t.Errorf("second creation: %v, want errOutdated", err)
	}
	seen, err = e.read(t.Context())
	expect.NoError(t, err)
	want := record{holder: "db-0", last: "db-0", since: time.Unix(7, 0), version: seen.version}
	expect.Equal(t, "record", want, seen, cmp.AllowUnexported(record{}))
}

// TestSuccessorAnnotation checks the annotation that hands the role over.
func TestSuccessorAnnotation(t *testing.T) {
	holder := "db-0"
	clientset := fake.NewClientset(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "database", ResourceVersion: "7", Annotations: map[string]string{
			successorAnnotation: "db-1", lastAnnotation: "db-0",
		}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
	})
	e := &leaseElection{leases: clientset.CoordinationV1().Leases("ns"), name: "database", duration: 5 * time.Second}
	seen, err := e.read(t.Context())
	expect.NoError(t, err)
	want := record{holder: "db-0", last: "db-0", successor: "db-1", version: "7"}
	expect.Equal(t, "record", want, seen, cmp.AllowUnexported(record{}))
}

func TestElectable(t *testing.T) {
	pod := func(name string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		change(p)
		return p
	}
	with := func(condition corev1.PodConditionType, status corev1.ConditionStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: condition, Status: status}}
		}
	}
	clientset := fake.NewClientset(
		pod("plain", func(*corev1.Pod) {}), pod("updated", with("InPlaceUpdateReady", corev1.ConditionTrue)),
		pod("updating", with("InPlaceUpdateReady", corev1.ConditionFalse)), pod("starting", with(corev1.PodReady, corev1.ConditionFalse)),
		pod("ending", func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			p.Finalizers = []string{"x/y"}
		}))
	e := &leaseElection{pods: clientset.CoreV1().Pods("ns")}
	for name, want := range map[string][2]bool{
		"plain": {true, true}, "updated": {true, true}, "starting": {true, false}, "updating": {}, "ending": {}, "missing": {},
	} {
		for i, successor := range []bool{false, true} {
			if got, err := e.electable(t.Context(), name, successor); err != nil || got != want[i] {
				t.Errorf("%s, successor %t: got %t, %v, want %t", name, successor, got, err, want[i])
			}
		}
	}
}

func TestRotation(t *testing.T) {
	now := time.Unix(40, 0)
	e, err := newRotation(options{name: "a-database-1", rotate: 10 * time.Second, replicas: 3})
	expect.NoError(t, err)
	e.now = func() time.Time { return now }
	for _, want := range []string{"a-database-1", "a-database-2", "a-database-0", "a-database-1"} {
		r, err := e.read(t.Context())
		if err != nil || r.holder != want {
			t.Errorf("at %d s: primary %q, %v, want %q", now.Unix(), r.holder, err, want)
		}
		now = now.Add(10 * time.Second)
	}
	if _, err := newRotation(options{name: "database"}); err == nil || !strings.Contains(err.Error(), "--name") {
		t.Errorf("a name without an ordinal: %v", err)
	}
}

func TestInvalidFlags(t *testing.T) {
	t.Setenv("POD_NAME", "")
	for flags, field := range map[string]string{
		"":                               "--name",
		"--name db-0 --retry 0s":         "--retry",
		"--name db-0 --replicas 0":       "--replicas",
		"--name db-0 --lag x":            "lag",
		"--name db-0 --lease-duration 0": "--lease-duration",
	} {
		if _, err := parse(strings.Fields(flags)); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%q: error %v, want one that names %s", flags, err, field)
		}
	}
}

func TestServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		a, _ := started(t, "db-0", m)
		synctest.Wait()
		b, _ := started(t, "db-1", m)
		<-time.After(time.Second)
		for path, want := range map[string][2]int{
			"/primary": {200, 503}, "/caught-up": {200, 503}, "/ready": {503, 503}, "/status": {200, 200},
		} {
			for i, r := range []*replica{a, b} {
				expect.Equal(t, fmt.Sprintf("%s of %s: status", path, r.state.name), want[i], ask(r, path).Code)
			}
		}
		got := status{}
		expect.NoError(t, json.Unmarshal(ask(b, "/status").Body.Bytes(), &got))
		want := status{Name: "db-1", Version: "v1", Role: "secondary", Primary: "db-0"}
		expect.Equal(t, "status", want, got)
	})
}

func ask(r *replica, path string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	handler(r).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return recorder
}
