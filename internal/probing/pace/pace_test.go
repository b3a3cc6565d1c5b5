// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package pace_test

import (
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/pace"
	"github.com/seamark-dev/seamark/test/expect"
)

func start() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// key returns the key of a probe, written namespace/pod/probe. The UID of the pod has both parts.
func key(name string) identity.Key {
	parts := strings.Split(name, "/")
	return identity.Key{
		ContainerKey: identity.ContainerKey{PodUID: types.UID(parts[0] + "/" + parts[1]), Name: "main"},
		ID:           identity.ID{Marker: "m", Probe: parts[2]},
	}
}

func nameOf(k identity.Key) string { return string(k.PodUID) + "/" + k.Probe }

func await(p *pace.Pacer, cost int, names ...string) {
	for _, name := range names {
		p.Await(strings.Split(name, "/")[0], key(name), cost)
	}
}

// drain returns the probes that run at a time. Those that waited for the rate of their pod have its name.
func drain(p *pace.Pacer, now time.Time) (ran []string) {
	for k, limit, ok := p.Next(now); ok; k, limit, ok = p.Next(now) {
		name := nameOf(k)
		if limit == pace.LimitPod {
			name += " pod"
		}
		ran = append(ran, name)
	}
	return ran
}

// probesOf returns the names of probes of a pod.
func probesOf(pod string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s/%d", pod, i))
	}
	return names
}

func TestPacer(t *testing.T) {
	type step struct {
		// at is the time in milliseconds.
		at       int
		withdraw string
		cost     int
		await    []string
		want     []string
		// next is when the caller asks again, in milliseconds; -1 if nothing waits.
		next int
	}
	pods := pace.Limits{Pod: 2, Node: 100}
	node := pace.Limits{Node: 2}
	cases := map[string]struct {
		limits pace.Limits
		steps  []step
	}{
		"no limits": {steps: []step{{await: probesOf("a/p", 3), want: probesOf("a/p", 3), next: -1}}},
		"rate of a pod": {pods, []step{
			{await: probesOf("a/p", 4), want: []string{"a/p/0", "a/p/1"}, next: 500},
			{at: 499, next: 500},
			{at: 500, want: []string{"a/p/2 pod"}, next: 1000},
			{at: 1000, want: []string{"a/p/3 pod"}, next: -1},
			{at: 1100, await: []string{"a/p/0"}, next: 1500},
			{at: 1500, want: []string{"a/p/0 pod"}, next: -1},
			{at: 5000, await: probesOf("a/p", 3), want: []string{"a/p/0", "a/p/1"}, next: 5500},
		}},
		"other pods do not wait": {pods, []step{
			{await: append(probesOf("a/p", 3), "a/q/0", "b/p/0"), want: []string{"a/p/0", "b/p/0", "a/q/0", "a/p/1"}, next: 500},
		}},
		"costs": {pods, []step{
			{cost: 3, await: probesOf("a/p", 2), want: []string{"a/p/0"}, next: 1000},
			{at: 999, next: 1000},
			{at: 1000, want: []string{"a/p/1 pod"}, next: -1},
		}},
		"rate of the node": {node, []step{
			{await: []string{"a/p/0", "a/p/1", "a/p/2", "a/q/0", "b/p/0"}, want: []string{"a/p/0", "b/p/0"}, next: 500},
			{at: 500, want: []string{"a/q/0"}, next: 1000},
			{at: 1000, want: []string{"a/p/1"}, next: 1500},
			{at: 1500, await: []string{"b/p/1"}, want: []string{"b/p/1"}, next: 2000},
			{at: 2000, want: []string{"a/p/2"}, next: -1},
		}},
		"removal": {node, []step{
			{await: probesOf("a/p", 4), want: []string{"a/p/0", "a/p/1"}, next: 500},
			{at: 499, withdraw: "a/p/2", next: 500},
			{at: 500, want: []string{"a/p/3"}, next: -1},
			{at: 600, await: []string{"a/p/2"}, next: 1000},
			{at: 700, withdraw: "a/p/2", next: -1},
			{at: 800, withdraw: "a/p/9", next: -1},
			{at: 900, withdraw: "c/p/0", next: -1},
		}},
		"clock set forward": {node, []step{
			{await: probesOf("a/p", 8), want: []string{"a/p/0", "a/p/1"}, next: 500},
			{at: 3600_000, want: []string{"a/p/2", "a/p/3"}, next: 3600_500},
			{at: 3600_500, want: []string{"a/p/4"}, next: 3601_000},
		}},
		"clock set back": {node, []step{
			{at: 3600_000, await: probesOf("a/p", 4), want: []string{"a/p/0", "a/p/1"}, next: 3600_500},
			{at: 0, next: 1500},
			{at: 1500, want: []string{"a/p/2"}, next: 2000},
			{at: 2000, want: []string{"a/p/3"}, next: -1},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := pace.New(tc.limits)
			for i, s := range tc.steps {
				now := start().Add(time.Duration(s.at) * time.Millisecond)
				if s.withdraw != "" {
					p.Withdraw(strings.Split(s.withdraw, "/")[0], key(s.withdraw))
				}
				await(p, max(s.cost, 1), s.await...)
				expect.Equal(t, fmt.Sprintf("step %d: runs", i), s.want, drain(p, now))
				next := -1
				if at, waits := p.At(); waits {
					next = int(math.Ceil(float64(at.Sub(start())) / float64(time.Millisecond)))
				}
				expect.Equal(t, fmt.Sprintf("step %d: milliseconds until the next run", i), s.next, next)
			}
		})
	}
}

// play runs probes that are due once per period for some seconds, and counts the runs of each
// namespace. delays are the longest delays.
func play(limits pace.Limits, seconds int, probes map[string]tenant) (runs map[string]int, delays map[string]time.Duration) {
	const tick = 5 * time.Millisecond
	p := pace.New(limits)
	runs, delays = map[string]int{}, map[string]time.Duration{}
	due := map[identity.Key]time.Time{}
	waits := map[identity.Key]bool{}
	period := func(k identity.Key) time.Duration { return probes[strings.Split(nameOf(k), "/")[0]].period }
	for name, one := range probes {
		for pod := range one.pods {
			for i := range one.probes {
				k := key(fmt.Sprintf("%s/%d/%d", name, pod, i))
				due[k] = start().Add(one.period * time.Duration(pod*one.probes+i) / time.Duration(one.pods*one.probes))
			}
		}
	}
	for now := start(); now.Before(start().Add(time.Duration(seconds) * time.Second)); now = now.Add(tick) {
		for k, at := range due {
			if !waits[k] && !at.After(now) {
				name := strings.Split(nameOf(k), "/")[0]
				p.Await(name, k, probes[name].cost)
				waits[k] = true
			}
		}
		for k, _, ok := p.Next(now); ok; k, _, ok = p.Next(now) {
			name := strings.Split(nameOf(k), "/")[0]
			runs[name]++
			delays[name] = max(delays[name], now.Sub(due[k]))
			for !due[k].After(now) {
				due[k] = due[k].Add(period(k))
			}
			waits[k] = false
		}
	}
	return runs, delays
}

// tenant is the probes of a namespace.
type tenant struct {
	pods, probes, cost int
	period             time.Duration
}

// TestFairness runs a node whose rate is exceeded, and checks what each namespace gets.
func TestFairness(t *testing.T) {
	const seconds = 10
	honest := tenant{pods: 10, probes: 4, cost: 1, period: time.Second}
	hostile := tenant{pods: 10, probes: 50, cost: 1, period: 100 * time.Millisecond}
	costly := hostile
	costly.cost = 8
	limits := pace.Limits{Pod: 50, Node: 200}
	cases := map[string]struct {
		limits  pace.Limits
		tenants map[string]tenant
		// want are the runs per second of each namespace.
		want map[string]int
	}{
		"honest alone": {limits, map[string]tenant{"honest": honest}, map[string]int{"honest": 40}},
		"one hostile":  {limits, map[string]tenant{"honest": honest, "hostile": hostile}, map[string]int{"honest": 40, "hostile": 160}},
		"costly runs":  {limits, map[string]tenant{"honest": honest, "hostile": costly}, map[string]int{"honest": 40, "hostile": 20}},
		"three hostile": {
			limits, map[string]tenant{"honest": honest, "x": hostile, "y": hostile, "z": costly}, map[string]int{"honest": 40, "x": 53, "y": 53, "z": 7},
		},
		"the rate of pods is reached": {
			pace.Limits{Pod: 10, Node: 200}, map[string]tenant{"honest": honest, "hostile": hostile}, map[string]int{"honest": 40, "hostile": 100},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			runs, delays := play(tc.limits, seconds, tc.tenants)
			for name, want := range tc.want {
				// Each rate can be saved up for a second.
				if got := runs[name]; got < want*seconds-want || got > want*(seconds+2) {
					t.Errorf("%s runs %d times in %d seconds, want %d per second", name, got, seconds, want)
				}
			}
			if delays["honest"] > 100*time.Millisecond {
				t.Errorf("the honest namespace is delayed by %s", delays["honest"])
			}
		})
	}
}

// TestForget checks that a pacer remembers a pod until it has its whole rate again.
func TestForget(t *testing.T) {
	p := pace.New(pace.Limits{Pod: 2})
	await(p, 1, probesOf("a/p", 3)...)
	drain(p, start())
	p.Forget(start().Add(time.Hour))
	if got := drain(p, start().Add(time.Hour)); len(got) != 1 {
		t.Errorf("runs %v after Forget, want the probe that waits", got)
	}
	p.Forget(start().Add(time.Hour))
	await(p, 1, "a/p/0", "a/p/1")
	if got := drain(p, start().Add(time.Hour)); len(got) != 1 {
		t.Errorf("runs %v after Forget, want one: the pod has used its rate", got)
	}
}

func TestCost(t *testing.T) {
	cases := map[string]struct {
		target probing.Target
		want   int
	}{
		"tcp":       {probing.Target{Handler: probing.HandlerTCP}, 1},
		"http":      {probing.Target{Handler: probing.HandlerHTTP, HTTP: &probing.HTTP{URL: &url.URL{Scheme: "http"}}}, 2},
		"https":     {probing.Target{Handler: probing.HandlerHTTP, HTTP: &probing.HTTP{URL: &url.URL{Scheme: "https"}}}, 8},
		"grpc":      {probing.Target{Handler: probing.HandlerGRPC, GRPC: &probing.GRPC{}}, 4},
		"grpc, TLS": {probing.Target{Handler: probing.HandlerGRPC, GRPC: &probing.GRPC{TLS: true}}, 8},
		"exec":      {probing.Target{Handler: probing.HandlerExec}, 2},
	}
	for name, tc := range cases {
		expect.Equal(t, name+": cost", tc.want, pace.Cost(&tc.target))
	}
}

// BenchmarkPacer measures what a run costs while nothing waits, and while the probes of all pods do.
func BenchmarkPacer(b *testing.B) {
	const pods = 250
	names := make([]string, pods)
	keys := make([]identity.Key, pods)
	for i := range names {
		names[i] = fmt.Sprintf("namespace-%d", i%20)
		keys[i] = key(fmt.Sprintf("%s/pod-%d/probe", names[i], i))
	}
	b.Run("ordinary", func(b *testing.B) {
		b.ReportAllocs()
		p, now := pace.New(pace.LimitsOf(2400)), start()
		for i := 0; b.Loop(); i = (i + 1) % pods {
			now = now.Add(2 * time.Millisecond)
			p.Await(names[i], keys[i], 1)
			if _, _, ok := p.Next(now); !ok {
				b.Fatal("the probe waits")
			}
			p.Next(now)
		}
	})
	b.Run("all pods wait", func(b *testing.B) {
		b.ReportAllocs()
		p, now := pace.New(pace.LimitsOf(2400)), start()
		for i := range pods {
			for range 20 {
				p.Await(names[i], keys[i], 1)
			}
		}
		namespaces := map[identity.Key]string{}
		for i := range pods {
			namespaces[keys[i]] = names[i]
		}
		for b.Loop() {
			k, _, ok := p.Next(now)
			if ok {
				p.Await(namespaces[k], k, 1)
				continue
			}
			now, _ = p.At()
		}
	})
}
