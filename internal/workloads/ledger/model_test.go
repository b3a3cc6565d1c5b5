// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// protections are what the law depends on. The model breaks the law without any of them.
type protections struct {
	// swap is that a write of the budget fails if another one came first.
	swap bool
	// renewal is that a charge that is older than half of its lifetime is renewed before it permits an operation again.
	renewal bool
	// lifetime is how long the disruption controller keeps a charge.
	lifetime time.Duration
	// ready is that an update ends when the pod is ready with the new image, and not when it is not ready.
	ready bool
	// leads is that a leader renews the charges of updates that have not ended.
	leads bool
	// takeover is that a deletion takes over the charge of an update.
	takeover bool
}

func complete() protections {
	return protections{swap: true, renewal: true, lifetime: Lifetime, ready: true, leads: true, takeover: true}
}

const (
	// requestTimeout is the longest time from the admission of a request to its execution. It is that of API servers.
	requestTimeout = time.Minute
	// lag is how late caches are at most.
	lag = 30 * time.Second
)

// modelPod is a pod of the model.
type modelPod struct {
	uid                int
	ready, terminating bool
	// image is that of the specification, and runs is that of the container.
	image, runs int
}

// request is an operation that the budget has permitted, and that is not executed yet. image is that of the pod which was admitted.
type request struct {
	pod        string
	uid, image int
	update     bool
	admitted   time.Time
}

// model is an API server with the pods of one budget, the disruption controller, and clients. Caches are older states.
type model struct {
	protections
	random *rand.Rand
	now    time.Time
	least  int
	uids   int
	// pods and budgets are all states, the newest last, and podTimes and budgetTimes when they were stored.
	pods                  []map[string]modelPod
	budgets               []*policyv1.PodDisruptionBudget
	podTimes, budgetTimes []time.Time
	// seenPods and seenBudget are what the disruption controller sees, and leaderPods what the leader sees, as indexes.
	seenPods, seenBudget, leaderPods int
	requests                         []request
	trace                            []string
}

func newModel(p protections, seed uint64, pods, least int) *model {
	m := &model{protections: p, random: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1_000_000, 0), least: least}
	first := map[string]modelPod{}
	for i := range pods {
		m.uids++
		first[fmt.Sprintf("p%d", i)] = modelPod{uid: m.uids, ready: true}
	}
	m.pods, m.podTimes, m.budgetTimes = []map[string]modelPod{first}, []time.Time{m.now}, []time.Time{m.now}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b", ResourceVersion: "0"}}
	budget.Status.DisruptionsAllowed = int32(pods - least)
	m.budgets = []*policyv1.PodDisruptionBudget{budget}
	return m
}

func (m *model) logf(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf("%4d s  ", m.now.Unix()-1_000_000)+fmt.Sprintf(format, args...))
}

func newest[T any](states []T) T { return states[len(states)-1] }

// set changes a pod, or removes it if change returns nil.
func (m *model) set(name string, pod *modelPod) {
	next := maps.Clone(newest(m.pods))
	delete(next, name)
	if pod != nil {
		next[name] = *pod
	}
	m.pods, m.podTimes = append(m.pods, next), append(m.podTimes, m.now)
}

// write stores a budget. It reports whether it did.
func (m *model) write(budget *policyv1.PodDisruptionBudget) bool {
	if m.swap && budget.ResourceVersion != newest(m.budgets).ResourceVersion {
		return false
	}
	budget = budget.DeepCopy()
	budget.ResourceVersion = fmt.Sprint(len(m.budgets))
	m.budgets, m.budgetTimes = append(m.budgets, budget), append(m.budgetTimes, m.now)
	return true
}

// available counts the pods that are ready and stay.
func available(pods map[string]modelPod) (count int) {
	for _, pod := range pods {
		if pod.ready && !pod.terminating {
			count++
		}
	}
	return count
}

// step lets one actor do one thing.
func (m *model) step() {
	steps := []func(){
		m.pass, m.charge, m.charge, m.evict, m.execute, m.execute, m.restart, m.restart, m.replace, m.replace, m.sync, m.sync, m.release,
		func() { m.seenPods = m.ahead(m.seenPods, len(m.pods)) },
		func() { m.seenBudget = m.ahead(m.seenBudget, len(m.budgets)) },
		func() { m.leaderPods = m.ahead(m.leaderPods, len(m.pods)) },
	}
	steps[m.random.IntN(len(steps))]()
}

// ahead moves a cache to a newer state.
func (m *model) ahead(index, states int) int { return index + m.random.IntN(states-index) }

// pass lets time pass. The leader renews charges, and caches follow when they are too late.
func (m *model) pass() {
	if m.leads {
		m.renew()
	}
	m.now = m.now.Add(time.Duration(m.random.IntN(20)) * time.Second)
	m.seenPods, m.leaderPods = m.follow(m.seenPods, m.podTimes), m.follow(m.leaderPods, m.podTimes)
	m.seenBudget = m.follow(m.seenBudget, m.budgetTimes)
}

func (m *model) follow(index int, times []time.Time) int {
	for index+1 < len(times) && m.now.Sub(times[index+1]) > lag {
		index++
	}
	return index
}

// pick returns a pod that is available, as the newest state shows it.
func (m *model) pick() (name string, pod modelPod) {
	var names []string
	for name, pod := range newest(m.pods) {
		if pod.ready && !pod.terminating {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", pod
	}
	slices.Sort(names)
	name = names[m.random.IntN(len(names))]
	return name, newest(m.pods)[name]
}

// charge is a client that wants to delete or update a pod. It reads an older state of the budget.
func (m *model) charge() {
	name, pod := m.pick()
	update := m.random.IntN(2) == 0
	if name == "" || update && pod.image != pod.runs {
		return
	}
	budget := m.budgets[max(0, len(m.budgets)-1-m.random.IntN(2))]
	disruption := Disruption{Pod: name}
	if update {
		disruption.Target = target(pod.image + 1)
	}
	d := m.decide(budget, disruption)
	if len(d.Permitted) == 0 || d.Charged != nil && !m.write(d.Charged) {
		return
	}
	// Nothing is written: the charge is that of the state that was read, which must still be there.
	if d.Charged == nil && budget != newest(m.budgets) {
		return
	}
	m.requests = append(m.requests, request{name, pod.uid, pod.image, update, m.now})
	m.logf("charge %s, update %t: %d allowed", name, update, newest(m.budgets).Status.DisruptionsAllowed)
}

// decide is Charge without the protections that are off.
func (m *model) decide(budget *policyv1.PodDisruptionBudget, disruption Disruption) Decision {
	entry, listed := budget.Status.DisruptedPods[disruption.Pod]
	age := m.now.Sub(entry.Time)
	_, updating := open(budget).updating[disruption.Pod]
	if listed && (!m.renewal && age < Lifetime || !m.takeover && updating && age < Fresh) {
		return Decision{Permitted: []string{disruption.Pod}}
	}
	return Charge(budget, []Disruption{disruption}, m.now)
}

// target is the target of an update to an image.
func target(image int) string { return fmt.Sprint(image) }

// evict is the eviction of a pod by the API server, which reads the newest budget and always charges.
func (m *model) evict() {
	name, pod := m.pick()
	budget := newest(m.budgets).DeepCopy()
	if name == "" || budget.Status.DisruptionsAllowed <= 0 {
		return
	}
	budget.Status.DisruptionsAllowed--
	if budget.Status.DisruptedPods == nil {
		budget.Status.DisruptedPods = map[string]metav1.Time{}
	}
	budget.Status.DisruptedPods[name] = metav1.NewTime(m.now)
	m.write(budget)
	m.requests = append(m.requests, request{name, pod.uid, pod.image, false, m.now})
	m.logf("evict %s: %d allowed", name, budget.Status.DisruptionsAllowed)
}

// execute does what a request asks for. Admission and execution concern the same pod, and an update the same version of it: otherwise
// the API server asks again.
func (m *model) execute() {
	if len(m.requests) == 0 {
		return
	}
	i := m.random.IntN(len(m.requests))
	r := m.requests[i]
	m.requests = slices.Delete(m.requests, i, i+1)
	pod, exists := newest(m.pods)[r.pod]
	if !exists || pod.uid != r.uid || pod.terminating || r.update && pod.image != r.image || m.now.Sub(r.admitted) > requestTimeout {
		return
	}
	if r.update {
		pod.image++
	} else {
		pod.terminating = true
	}
	m.set(r.pod, &pod)
	m.logf("execute %s, update %t", r.pod, r.update)
}

// restart is a kubelet that stops a container whose image has changed, or starts it.
func (m *model) restart() {
	for _, name := range slices.Sorted(maps.Keys(newest(m.pods))) {
		pod := newest(m.pods)[name]
		if pod.image == pod.runs && pod.ready || m.random.IntN(2) == 0 {
			continue
		}
		// A container is stopped first. A pod becomes ready after the controllers have seen it.
		if pod.image != pod.runs && pod.ready {
			pod.ready = false
		} else if _, seen := m.pods[m.seenPods][name]; seen && m.pods[m.seenPods][name].uid == pod.uid {
			pod.ready, pod.runs = true, pod.image
		}
		m.set(name, &pod)
		m.logf("restart %s: ready %t", name, pod.ready)
		return
	}
}

// replace removes a pod that terminates, and creates one, often with the same name.
func (m *model) replace() {
	for _, name := range slices.Sorted(maps.Keys(newest(m.pods))) {
		if !newest(m.pods)[name].terminating {
			continue
		}
		m.set(name, nil)
		m.uids++
		if m.random.IntN(2) == 0 {
			name = fmt.Sprintf("n%d", m.uids)
		}
		m.set(name, &modelPod{uid: m.uids})
		m.logf("replace by %s", name)
		return
	}
}

// sync is the disruption controller. It keeps the charges of pods that it sees and that do not terminate, as long as they are young,
// and counts the other pods that are ready.
func (m *model) sync() {
	budget, pods := m.budgets[m.seenBudget].DeepCopy(), m.pods[m.seenPods]
	healthy := 0
	kept := map[string]metav1.Time{}
	for name, pod := range pods {
		charge, charged := budget.Status.DisruptedPods[name]
		switch {
		case pod.terminating:
		case charged && m.now.Sub(charge.Time) <= m.lifetime:
			kept[name] = charge
		case pod.ready:
			healthy++
		}
	}
	budget.Status.DisruptedPods = kept
	budget.Status.DisruptionsAllowed = max(0, int32(healthy-m.least))
	if m.write(budget) {
		m.logf("sync: %d healthy, %d allowed, charges %v", healthy, budget.Status.DisruptionsAllowed, slices.Sorted(maps.Keys(kept)))
	}
}

// release is the leader, which ends the charges of pods that it sees as updated.
func (m *model) release() {
	var ended []Disruption
	for name, pod := range m.pods[m.leaderPods] {
		if pod.ready && pod.image == pod.runs || !pod.ready && !m.ready {
			ended = append(ended, Disruption{name, target(pod.image)})
		}
	}
	if released := Release(newest(m.budgets), ended); released != nil && m.write(released) {
		m.logf("release, of %v", ended)
	}
}

// renew renews the charges of updates that the leader does not see as ended.
func (m *model) renew() {
	for _, name := range slices.Sorted(maps.Keys(open(newest(m.budgets)).updating)) {
		budget := newest(m.budgets)
		charged, seen := open(budget).updating[name].target, m.pods[m.leaderPods][name]
		ended := seen.ready && seen.image == seen.runs && target(seen.image) == charged
		if ended || m.now.Sub(budget.Status.DisruptedPods[name].Time) < Lifetime/2 {
			continue
		}
		if d := Charge(budget, []Disruption{{name, charged}}, m.now); d.Charged != nil && m.write(d.Charged) {
			m.logf("renew %s", name)
		}
	}
}

// play returns why the law is broken, empty if it is not.
func play(p protections, seed uint64) string {
	m := newModel(p, seed, 4, 2)
	for range 300 {
		m.step()
		if count := available(newest(m.pods)); count < m.least {
			return fmt.Sprintf("seed %d: %d pods are available, want at least %d:\n%s", seed, count, m.least, strings.Join(m.trace, "\n"))
		}
	}
	return ""
}

const seeds = 1000

// Deletions, evictions and updates of the pods of one budget never make fewer of them available than it demands, in whatever order
// requests, caches and controllers act.
func TestLaw(t *testing.T) {
	for seed := range uint64(seeds) {
		if broken := play(complete(), seed); broken != "" {
			t.Fatal(broken)
		}
	}
}

// Without one of the protections, the law is broken: the model can fail.
func TestLawNeedsEachProtection(t *testing.T) {
	const more = 20 * seeds // Some faults are rare.
	for name, without := range map[string]func(*protections){
		"compare-and-swap":                    func(p *protections) { p.swap = false },
		"renewal of old charges":              func(p *protections) { p.renewal = false },
		"two minutes":                         func(p *protections) { p.lifetime = 10 * time.Second },
		"renewal by the leader":               func(p *protections) { p.leads = false },
		"readiness at the end of an update":   func(p *protections) { p.ready = false },
		"takeover of the charge of an update": func(p *protections) { p.takeover = false },
	} {
		t.Run(name, func(t *testing.T) {
			p := complete()
			without(&p)
			for seed := range uint64(more) {
				if play(p, seed) != "" {
					return
				}
			}
			t.Errorf("the law holds in %d runs without it", more)
		})
	}
}
