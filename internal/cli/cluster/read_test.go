// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// server is a fake API server that refuses some requests and counts all.
type server struct {
	refuse   map[permission.Resource]error
	requests map[string]int
}

func resourceOf(object any) permission.Resource {
	switch o := object.(type) {
	case *corev1.Pod, *corev1.PodList:
		return permission.Pods
	case *v1alpha1.PodProbeMarkerList:
		return permission.Markers
	case *v1alpha1.NodePodProbe, *v1alpha1.NodePodProbeList:
		return permission.Plans
	case *seamarkv1alpha1.ProbePlanList:
		return permission.PlanSlices
	case *seamarkv1alpha1.ProbeReportList:
		return permission.Reports
	case client.Object:
		return permission.Nodes
	case client.ObjectList:
		return permission.Resource(o.GetObjectKind().GroupVersionKind().Kind)
	default:
		return ""
	}
}

func (s *server) client(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	s.requests = map[string]int{}
	requests := make(chan string, 1)
	requests <- ""
	return fakeapi.Client(t, objects...).WithIndex(&corev1.Pod{}, "spec.nodeName", fakeapi.NodeOf).
		WithInterceptorFuncs(fakeapi.Before(func(verb string, object any) error {
			token := <-requests
			s.requests[verb+" "+string(resourceOf(object))]++
			requests <- token
			return s.refuse[resourceOf(object)]
		})).Build()
}

func forbidden(resource permission.Resource) error {
	group := schema.ParseGroupResource(string(resource))
	return apierrors.NewForbidden(group, "", errors.New("no role"))
}

// fixture returns pods on nodes, with a marker, plans and reports.
func fixture(nodes int) []client.Object {
	objects := []client.Object{builders.Marker("ns", "game").Build(), builders.Marker("other", "game").Build()}
	for i := range nodes {
		node, pod := fmt.Sprintf("n%02d", i), fmt.Sprintf("game-%02d", i)
		objects = append(objects,
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"type": "virtual-kubelet", "zone": "a"}}},
			&v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}},
			&seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: node + ".0"}, NodeName: node},
			builders.Pod("ns", pod).Node(node).Label("app", "game").Label("nr", fmt.Sprint(i%2)).Build())
	}
	return append(objects, builders.Pod("other", "web").Node("n00").Build())
}

// summary is what a snapshot has, by name.
type summary struct{ Pods, Markers, Nodes, Plans, Reports, Absent, Missing []string }

func summarize(s *Snapshot) summary {
	var got summary
	for _, pod := range s.Pods {
		got.Pods = append(got.Pods, pod.Name)
	}
	for _, m := range s.Markers {
		got.Markers = append(got.Markers, m.Namespace+"/"+m.Name)
	}
	for name := range s.Nodes {
		got.Nodes = append(got.Nodes, name)
	}
	for name := range s.Plans {
		got.Plans = append(got.Plans, name)
	}
	for name, reports := range s.Reports {
		got.Reports = append(got.Reports, fmt.Sprintf("%s %d", name, len(reports)))
	}
	for _, m := range s.Missing {
		got.Missing = append(got.Missing, m.String())
	}
	got.Absent = s.Absent
	for _, list := range [][]string{got.Pods, got.Nodes, got.Plans, got.Reports} {
		slices.Sort(list)
	}
	return got
}

func TestRead(t *testing.T) {
	two := []string{"n00", "n01"}
	reports := []string{"n00 1", "n01 1"}
	for name, test := range map[string]struct {
		query  Query
		refuse []permission.Resource
		want   summary
	}{
		"namespace": {query: Query{Namespace: "ns"}, want: summary{
			Pods: []string{"game-00", "game-01"}, Markers: []string{"ns/game"}, Nodes: two, Plans: two, Reports: reports,
		}},
		"all namespaces": {query: Query{}, want: summary{
			Pods: []string{"game-00", "game-01", "web"}, Markers: []string{"ns/game", "other/game"}, Nodes: two, Plans: two, Reports: reports,
		}},
		"selector": {query: Query{Namespace: "ns", Selector: labels.SelectorFromSet(labels.Set{"nr": "1"})}, want: summary{
			Pods: []string{"game-01"}, Markers: []string{"ns/game"}, Nodes: two[1:], Plans: two[1:], Reports: reports[1:],
		}},
		"node": {query: Query{Node: "n00"}, want: summary{
			Pods: []string{"game-00", "web"}, Markers: []string{"ns/game", "other/game"}, Nodes: two[:1], Plans: two[:1], Reports: reports[:1],
		}},
		"names": {query: Query{Namespace: "ns", Names: []string{"game-01", "gmae-00"}}, want: summary{
			Pods: []string{"game-01"}, Markers: []string{"ns/game"}, Nodes: two[1:], Plans: two[1:], Reports: reports[1:], Absent: []string{"gmae-00"},
		}},
		"namespaced user": {query: Query{Namespace: "ns"}, refuse: []permission.Resource{permission.Nodes, permission.Plans, permission.Reports}, want: summary{
			Pods: []string{"game-00", "game-01"}, Markers: []string{"ns/game"}, Missing: []string{
				"no permission to get nodepodprobes.apps.kruise.io in the cluster", "no permission to get nodes in the cluster",
				"no permission to list probereports.seamark.dev in the cluster",
			},
		}},
		"no permission for pods": {query: Query{Namespace: "ns"}, refuse: []permission.Resource{permission.Pods, permission.Markers}, want: summary{
			Missing: []string{
				"no permission to list podprobemarkers.apps.kruise.io in namespace ns", "no permission to list pods in namespace ns",
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := server{refuse: map[permission.Resource]error{}}
			for _, resource := range test.refuse {
				s.refuse[resource] = forbidden(resource)
			}
			snapshot, err := Read(t.Context(), s.client(t, fixture(2)...), test.query)
			expect.NoError(t, err)
			expect.Equal(t, "snapshot", test.want, summarize(snapshot))
		})
	}
}

// The plans of few nodes are read one by one: those of all nodes of a large cluster are large.
func TestRequests(t *testing.T) {
	for name, test := range map[string]struct {
		nodes int
		query Query
		want  map[string]int
	}{
		"few nodes": {2, Query{Namespace: "ns"}, map[string]int{
			"list pods": 1, "list " + string(permission.Markers): 1, "get nodes": 2, "get " + string(permission.Plans): 2, "list " + string(permission.PlanSlices): 2, "list " + string(permission.Reports): 2,
		}},
		"many nodes": {maxSingleNodes + 1, Query{Namespace: "ns"}, map[string]int{
			"list pods": 1, "list " + string(permission.Markers): 1, "list NodeList": 1, "list " + string(permission.Plans): 1, "list " + string(permission.PlanSlices): 1, "list " + string(permission.Reports): 1,
		}},
		"all namespaces": {2, Query{}, map[string]int{
			"list pods": 1, "list " + string(permission.Markers): 1, "list NodeList": 1, "list " + string(permission.Plans): 1, "list " + string(permission.PlanSlices): 1, "list " + string(permission.Reports): 1,
		}},
		"a selector of nothing": {0, Query{Namespace: "ns", Selector: labels.Nothing()}, map[string]int{"list " + string(permission.Markers): 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := server{}
			snapshot, err := Read(t.Context(), s.client(t, fixture(test.nodes)...), test.query)
			if err != nil || len(snapshot.Plans) != test.nodes || len(snapshot.Nodes) != test.nodes || len(snapshot.Reports) != test.nodes {
				t.Fatalf("got %d plans, %d nodes, %d reports and error %v", len(snapshot.Plans), len(snapshot.Nodes), len(snapshot.Reports), err)
			}
			expect.Equal(t, "requests", test.want, s.requests)
		})
	}
}

func TestMissing(t *testing.T) {
	snapshot := Snapshot{
		Missing: []permission.Missing{
			{Resource: permission.Pods, Verb: "list", Namespace: "ns"}, {Resource: permission.Reports, Verb: "list"}, {Resource: permission.Markers},
		},
	}
	err := snapshot.Require(permission.Pods, permission.Markers)
	want := "no permission to list pods in namespace ns; ask for: kubectl create rolebinding seamark-view -n ns --clusterrole=view --user=USER\n" +
		"resource podprobemarkers.apps.kruise.io is not installed in the cluster; install Seamark in the cluster"
	if exit.Code(err) != exit.Access || err.Error() != want {
		t.Errorf("error %v with exit code %d, want %s", err, exit.Code(err), want)
	}
	if err := snapshot.Require(permission.Nodes); err != nil {
		t.Errorf("error %v for a resource that was read", err)
	}
	hint := "no permission to list probereports.seamark.dev in the cluster: states come from the marks of pods; " +
		"ask for: kubectl create clusterrolebinding seamark-view-states --clusterrole=seamark-view-states --user=USER"
	expect.Equal(t, "hint", hint, snapshot.Hint())
}

func TestErrorsOfRequests(t *testing.T) {
	notInstalled := &apierrors.StatusError{ErrStatus: metav1.Status{
		Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: "the server could not find the requested resource",
	}}
	for name, test := range map[string]struct {
		err     error
		missing int
		code    int
	}{
		"no error":      {nil, 0, exit.OK},
		"forbidden":     {forbidden(permission.Plans), 1, exit.OK},
		"not installed": {notInstalled, 1, exit.OK},
		"unreachable":   {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, 0, exit.Access},
		"unauthorized":  {apierrors.NewUnauthorized("token expired"), 0, exit.Access},
		"server error":  {apierrors.NewInternalError(errors.New("etcd")), 0, exit.Failed},
		"interrupted":   {context.Canceled, 0, exit.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			var m missing
			err := m.note(test.err, "list", permission.Plans, "")
			_ = m.note(test.err, "list", permission.Plans, "")
			if exit.Code(err) != test.code || len(m.found) != test.missing {
				t.Errorf("error %v with exit code %d and missing %v, want code %d and %d missing", err, exit.Code(err), m.found, test.code, test.missing)
			}
		})
	}
}

// TestResourcesOfServers reads an object of a kind that is discovered, and of one that is not, from API servers that do not have it.
func TestResourcesOfServers(t *testing.T) {
	refuses := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	lacks := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api" && r.URL.Path != "/apis" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"APIGroupList","groups":[{"name":"batch","versions":[{"groupVersion":"batch/v1","version":"v1"}]}]}`))
	}
	for name, test := range map[string]struct {
		serve func(http.Handler) *httptest.Server
		// handle is nil for a server that is closed.
		handle  http.HandlerFunc
		missing bool
	}{
		"not installed": {serve: httptest.NewServer, handle: lacks, missing: true},
		"no token":      {serve: httptest.NewServer, handle: refuses},
		"unknown CA":    {serve: httptest.NewTLSServer, handle: lacks},
		"unreachable":   {serve: httptest.NewServer},
	} {
		t.Run(name, func(t *testing.T) {
			server := test.serve(test.handle)
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			defer server.Close()
			if test.handle == nil {
				server.Close()
			}
			c, err := newClient(&rest.Config{Host: server.URL})
			expect.NoError(t, err)
			for _, object := range []client.Object{&v1alpha1.CloneSet{}, &v1alpha1.PodProbeMarker{}} {
				missing, err := MissingOf(c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, object), "get", "things", "ns")
				if code := exit.Code(err); (missing != nil) != test.missing || !test.missing && code != exit.Access {
					t.Errorf("%T: missing %v, and error %v with exit code %d", object, missing, err, code)
				}
			}
		})
	}
}

func TestAbsentPodsAreNamed(t *testing.T) {
	s := server{}
	c := s.client(t, fixture(2)...)
	snapshot, err := Read(t.Context(), c, Query{Namespace: "ns", Names: []string{"gmae-00", "proxy"}})
	expect.NoError(t, err)
	err = snapshot.AbsentError(t.Context(), c, "ns")
	want := "pod \"gmae-00\" not found in namespace ns; did you mean \"game-00\"?\npod \"proxy\" not found in namespace ns"
	if err == nil || err.Error() != want || exit.Code(err) != exit.Failed {
		t.Errorf("error %v, want %s", err, want)
	}
}
