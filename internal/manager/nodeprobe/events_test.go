// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
	"github.com/seamark-dev/seamark/test/interleave"
)

func TestPodUpdates(t *testing.T) {
	pod := func(uid, node string) *builders.PodBuilder {
		return builders.Pod("ns", "a").UID(uid).Label("app", "game").Node(node)
	}
	cases := map[string]struct {
		before, after *corev1.Pod
		want          []string
	}{
		"no relevant change":         {before: pod("1", "x").Build(), after: pod("1", "x").Build()},
		"pod ends":                   {before: pod("1", "x").Build(), after: pod("1", "x").Terminating().Build(), want: []string{"x"}},
		"pod is initialized":         {before: pod("1", "x").Initialized("False").Build(), after: pod("1", "x").Build(), want: []string{"x"}},
		"recreated on the same node": {before: pod("1", "x").Build(), after: pod("2", "x").Build(), want: []string{"x"}},
		"recreated on another node":  {before: pod("1", "x").Build(), after: pod("2", "y").Build(), want: []string{"x", "y"}},
		"recreated, not bound":       {before: pod("1", "x").Build(), after: pod("2", "").Build(), want: []string{"x"}},
		"recreated after its end":    {before: pod("1", "x").Terminating().Build(), after: pod("2", "").Build()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := reconciler(t, &recorded{}, nil, nil)
			q := fakeapi.Queue(t)
			r.podEvents().Update(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: tc.before, ObjectNew: tc.after}, q)
			var got []string
			r.bursts.Expire(func(node string, _ burst) bool {
				got = append(got, node)
				return true
			})
			slices.Sort(got)
			expect.Equal(t, "touched nodes", tc.want, got)
		})
	}
}

func TestChangesOfPlansAreLogged(t *testing.T) {
	pod := func(name, uid, ip string) v1alpha1.PodProbe {
		return v1alpha1.PodProbe{Namespace: "games", Name: name, UID: uid, IP: ip, Probes: make([]v1alpha1.ContainerProbe, 2)}
	}
	var got []string
	lines := funcr.New(func(_, line string) { got = append(got, line) }, funcr.Options{Verbosity: 10})
	logChanges(logr.NewContext(t.Context(), lines),
		[]v1alpha1.PodProbe{pod("a", "1", ""), pod("b", "2", ""), pod("c", "3", ""), pod("e", "5", "")},
		[]v1alpha1.PodProbe{pod("a", "1", "10.0.0.1"), pod("c", "3", ""), pod("d", "4", ""), pod("e", "6", "")})
	want := []string{
		`"level"=1 "msg"="Unplanned pod" "pod"="games/b" "podUID"="2"`,
		`"level"=1 "msg"="Unplanned pod" "pod"="games/e" "podUID"="5"`,
		`"level"=1 "msg"="Planned pod" "pod"="games/a" "podUID"="1" "probes"=2`,
		`"level"=1 "msg"="Planned pod" "pod"="games/d" "podUID"="4" "probes"=2`,
		`"level"=1 "msg"="Planned pod" "pod"="games/e" "podUID"="6" "probes"=2`,
	}
	expect.Equal(t, "lines", want, got)
}

// A planned pod loses its label while its marker changes. In each order of stores and handlers, the
// node is touched after a change that removes the pod from the plan.
func TestNoWakeUpIsLost(t *testing.T) {
	pod := func(app string) *corev1.Pod { return builders.Pod("ns", "a").Label("app", app).Node("node-1").Build() }
	marker := func() *builders.MarkerBuilder { return builders.Marker("ns", "web").Probe(builders.Probe("p")) }
	npp := nodePodProbe("node-1", "u", v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{
		Namespace: "ns", Name: "a", UID: "uid-a", Probes: []v1alpha1.ContainerProbe{{Name: "web#p"}},
	}}})
	changes := map[string]*v1alpha1.PodProbeMarker{
		"marker is being deleted":      marker().Deleting().Build(),
		"marker is deleted":            nil,
		"marker gets another selector": marker().Selector("app", "db").Generation(2).Build(),
		"marker gets an invalid probe": marker().Probe(builders.Probe("q").Condition("Ready")).Generation(2).Build(),
	}
	for name, changed := range changes {
		race := interleave.Race{
			PodBefore: pod("game"), PodAfter: pod("other"),
			MarkerBefore: marker().Build(), MarkerAfter: changed,
			Others: []client.Object{npp},
		}
		for _, order := range interleave.Orders() {
			t.Run(name+" "+order, func(t *testing.T) {
				r := reconciler(t, &recorded{}, nil, nil)
				touched := false
				race.Play(t, order, interleave.Controller{
					Pods: r.podEvents(), Markers: controllers.MarkerEvents(r.touchNodes),
					Store: func(c client.Client) { r.Reader.Client = c },
					// Either change removes the pod from the plan, if the node is compiled afterwards.
					Stepped: func(_ controllers.Queue, changed bool) {
						if _, open := r.bursts.Take("node-1"); open {
							touched = touched || changed
						}
					},
				})
				if !touched {
					t.Error("the node is not touched")
				}
			})
		}
	}
}

func TestBursts(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	every := func(step, until int) []time.Duration {
		var at []time.Duration
		for n := 0; n <= until; n += step {
			at = append(at, ms(n))
		}
		return at
	}
	cases := map[string]struct {
		pods    []time.Duration // changes of pods
		markers []time.Duration // later changes of markers
		now     time.Duration
		want    time.Duration
	}{
		"no change":                       {now: ms(5)},
		"new change":                      {pods: []time.Duration{0}, now: 0, want: ms(100)},
		"settling":                        {pods: []time.Duration{0}, now: ms(60), want: ms(40)},
		"settled":                         {pods: []time.Duration{0}, now: ms(100)},
		"second change":                   {pods: []time.Duration{0, ms(90)}, now: ms(100), want: ms(90)},
		"repeated changes":                {pods: every(50, 900), now: ms(920), want: ms(80)},
		"repeated changes, limit near":    {pods: every(50, 950), now: ms(960), want: ms(40)},
		"repeated changes, limit reached": {pods: every(50, 1000), now: ms(1000)},
		"marker":                          {markers: []time.Duration{0}, now: ms(100), want: ms(200)},
		"marker after pod":                {pods: []time.Duration{0}, markers: []time.Duration{ms(50)}, now: ms(100), want: ms(250)},
		"repeated markers":                {markers: every(250, 1250), now: ms(1300), want: ms(200)},
		"repeated markers, limit reached": {markers: every(250, 1500), now: ms(1500)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(1_700_000_000, 0)
			now := start
			r := &Reconciler{Options: Options{Now: func() time.Time { return now }}}
			q := fakeapi.Queue(t)
			touch := func(node string, at time.Duration, debounce debounce) {
				now = start.Add(at)
				r.touch(q, node, debounce)
			}
			for _, at := range tc.pods {
				touch("node", at, afterPod())
			}
			for _, at := range tc.markers {
				touch("node", at, afterMarker())
			}
			touch("another", tc.now, afterPod())
			expect.Equal(t, "waits", tc.want, r.debouncing("node"))
			if tc.want == 0 {
				touch("node", tc.now, afterPod())
				expect.Equal(t, "a new burst waits", afterPod().idle, r.debouncing("node"))
			}
		})
	}
}
