// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package entries_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
)

// cluster are sets, and the entries that are stored. Each set selects the pods of its namespace with the label of its
// name, also after other changes in it.
type cluster struct {
	*testing.T
	random  *rand.Rand
	sets    []*v1alpha1.SidecarSet
	stored  entries.Lists
	created int
	// sent are the sets whose pods were sent to the injectors.
	sent map[types.UID]bool
	// rows are the resource versions that the sets had when their rows were written, by group and row.
	rows    map[string]int
	version int
	log     []string
}

type entry = admissionregistrationv1.MutatingWebhook

func namespaceOf(s *v1alpha1.SidecarSet) string { return "of-" + s.Name }

// sends reports whether the API server sends the pods of the set by the entries.
func (c *cluster) sends(s *v1alpha1.SidecarSet, own map[string][]*entry, rows map[string][][][]string) bool {
	pod := labels.Set{"set": s.Name}
	for _, e := range own[s.Name] {
		namespace := labels.Set{"kubernetes.io/metadata.name": namespaceOf(s)}
		if selects(c.T, e.NamespaceSelector, namespace) && selects(c.T, e.ObjectSelector, pod) {
			return true
		}
	}
	return slices.ContainsFunc(rows[s.Name], func(row [][]string) bool {
		return !slices.ContainsFunc(row, func(r []string) bool {
			switch r[0] {
			case "n":
				return !slices.Contains(r[2:], "="+namespaceOf(s))
			case "i":
				return !slices.Contains(r[2:], "="+pod[r[1]])
			default:
				return r[0] != "x" || slices.Contains(r[2:], "="+pod[r[1]])
			}
		})
	})
}

func selects(t *testing.T, s *metav1.LabelSelector, of labels.Set) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(of)
}

// check fails if the pods of a set that injects were sent before, and are not now.
func (c *cluster) check() {
	c.Helper()
	own, rows := c.index()
	for _, s := range c.sets {
		now := c.sends(s, own, rows)
		switch {
		case s.Spec.InjectionStrategy.Paused:
			delete(c.sent, s.UID)
		case c.sent[s.UID] && !now:
			c.Fatalf("the pods of %s are no longer sent, after:\n%s", s.Name, strings.Join(c.log[max(0, len(c.log)-12):], "\n"))
		case now:
			c.sent[s.UID] = true
		}
	}
}

// index returns the own entries and the rows of the groups by the names of the sets, and checks the bounds.
func (c *cluster) index() (map[string][]*entry, map[string][][][]string) {
	c.Helper()
	own, rows := map[string][]*entry{}, map[string][][][]string{}
	for i, list := range c.stored {
		count := 0
		for j := range list {
			name, isOwn := strings.CutSuffix(list[j].Name, ".sidecarsets.seamark.dev")
			if isOwn {
				own[name] = append(own[name], &list[j])
				count++
				continue
			}
			for _, row := range membersOf(c.T, &list[j]) {
				rows[row[0][1]] = append(rows[row[0][1]], row)
			}
		}
		if count > 64 || len(list)-count > 16 {
			c.Fatalf("configuration %d has %d own entries and %d groups", i, count, len(list)-count)
		}
	}
	return own, rows
}

// versions fails if a cache that has reached the version in the path of a group may lack one of its sets, as its row says.
func (c *cluster) versions(before, after []entry) {
	c.Helper()
	keys := func(of *entry) map[string]string {
		rows := map[string]string{}
		for _, row := range membersOf(c.T, of) {
			rows[fmt.Sprint(of.Name, row)] = row[0][1]
		}
		return rows
	}
	stored := map[string]string{}
	for i := range before {
		maps.Copy(stored, keys(&before[i]))
	}
	for i := range after {
		for key, name := range keys(&after[i]) {
			at := slices.IndexFunc(c.sets, func(s *v1alpha1.SidecarSet) bool { return s.Name == name })
			if stored[key] == "" {
				c.rows[key], _ = strconv.Atoi(c.sets[at].ResourceVersion)
			}
			path := *after[i].ClientConfig.Service.Path
			if version, _ := strconv.Atoi(entries.GroupVersion(path)); version < c.rows[key] || version > c.version {
				c.Fatalf("the path %s has the row of %s, which was written at %d", path, name, c.rows[key])
			}
		}
	}
}

// membersOf returns the rows of a group. An entry of one set has none.
func membersOf(t *testing.T, of *entry) [][][]string {
	t.Helper()
	if strings.HasSuffix(of.Name, ".sidecarsets.seamark.dev") {
		return nil
	}
	text, _, _ := strings.Cut(of.MatchConditions[len(of.MatchConditions)-1].Expression, ".exists(")
	var members [][][]string
	if err := json.Unmarshal([]byte(text), &members); err != nil || len(members) == 0 || len(members) > 128 || len(text) > 24<<10+128*8 {
		t.Fatalf("group %s has %d members of %d bytes: %v", of.Name, len(members), len(text), err)
	}
	return members
}

// step writes the next entries in random order, and ends before some of them.
func (c *cluster) step(complete bool) {
	c.Helper()
	plan := server().Plan(c.sets, c.stored)
	for _, i := range c.random.Perm(len(plan.Lists)) {
		if !complete && c.random.IntN(4) == 0 {
			c.log = append(c.log, "the program ends")
			return
		}
		if !equality.Semantic.DeepEqual(c.stored[i], plan.Lists[i]) {
			c.versions(c.stored[i], plan.Lists[i])
			c.stored[i] = plan.Lists[i]
			c.log = append(c.log, fmt.Sprint("write ", i))
			c.check()
		}
	}
}

// duplicate replaces an entry by one that another configuration has, as if it were restored: of a set, or a row of a group.
// One of the two may be older.
func (c *cluster) duplicate() {
	from := c.random.IntN(len(c.stored))
	to := (from + 1 + c.random.IntN(len(c.stored)-1)) % len(c.stored)
	original := &c.stored[from][c.random.IntN(len(c.stored[from]))]
	rows := membersOf(c.T, original)
	if len(rows) > 0 {
		condition := &original.MatchConditions[len(original.MatchConditions)-1]
		row, _ := json.Marshal(rows[0])
		condition.Expression = "[" + string(row) + "," + strings.TrimPrefix(condition.Expression, "[")
		return
	}
	replaced := &c.stored[to][c.random.IntN(len(c.stored[to]))]
	if len(membersOf(c.T, replaced)) > 0 || slices.ContainsFunc(c.stored[to], func(e entry) bool { return e.Name == original.Name }) {
		return
	}
	*replaced = *original.DeepCopy()
	if older := []*entry{original, replaced, nil}[c.random.IntN(3)]; older != nil {
		older.ObjectSelector.MatchLabels = map[string]string{"set": "older"}
	}
}

// change does something that users do.
func (c *cluster) change() {
	s := c.sets[c.random.IntN(len(c.sets))]
	replaced := s.DeepCopy()
	force := replaced.Status.InForce
	what := c.random.IntN(9)
	switch {
	case what == 0 || len(c.sets) < 262:
		c.create(c.random.IntN(4) == 0)
		return
	case what <= 2:
		c.log = append(c.log, "delete "+s.Name)
		c.sets = slices.DeleteFunc(c.sets, func(each *v1alpha1.SidecarSet) bool { return each == s })
		return
	case what == 3:
		replaced.Spec.InjectionStrategy.Paused = !s.Spec.InjectionStrategy.Paused
	case what == 4:
		if replaced.Annotations == nil {
			replaced.Annotations = map[string]string{v1alpha1.InjectionFailurePolicyKey: "Ignore"}
		} else {
			replaced.Annotations = nil
		}
	case what == 5 && force != nil:
		if force.Namespace == "" {
			force.Namespace = namespaceOf(s)
		} else {
			force.Namespace = ""
		}
	case what == 6:
		// OpenKruise's client drops the fields, and the controller writes them again.
		if replaced.Status.InForce = nil; force == nil {
			replaced.Status.InForce = set(s.Name, c.content(s)).Status.InForce
		}
	case force != nil:
		// Groups have room for few of the large ones.
		force.Selector.MatchExpressions[0].Values = slices.Repeat([]string{strings.Repeat("x", 1+c.random.IntN(60))}, 1+c.random.IntN(80))
	}
	c.version++
	replaced.ResourceVersion = fmt.Sprint(c.version)
	c.log = append(c.log, fmt.Sprintf("edit %d of %s", what, s.Name))
	c.sets[slices.Index(c.sets, s)] = replaced
}

// content returns an edit for the pods of the set.
func (c *cluster) content(s *v1alpha1.SidecarSet) func(*v1alpha1.SidecarSetInForce) {
	return func(f *v1alpha1.SidecarSetInForce) {
		f.Selector.MatchLabels = map[string]string{"set": s.Name}
		f.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "v", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"x"}}}
	}
}

func (c *cluster) create(wide bool) {
	s := set(fmt.Sprintf("set-%d", c.created), nil)
	c.content(s)(s.Status.InForce)
	if !wide {
		s.Status.InForce.Namespace = namespaceOf(s)
	}
	s.CreationTimestamp = metav1.NewTime(time.Unix(int64(c.created), 0))
	c.created++
	c.version++
	s.ResourceVersion = fmt.Sprint(c.version)
	c.sets = append(c.sets, s)
	c.log = append(c.log, "create "+s.Name)
}

// TestPodsAreSentAtAnyTime changes more sets than have entries of their own, while the program ends between any two
// writes: at each stored state, the pods of each set that injects are sent to the injectors, once they were.
func TestPodsAreSentAtAnyTime(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c := &cluster{T: t, random: rand.New(rand.NewPCG(seed, 43)), sent: map[types.UID]bool{}, rows: map[string]int{}}
			for range 300 {
				c.create(c.random.IntN(2) == 0)
			}
			c.stored = server().Plan(c.sets, c.stored).Lists
			for range 24 {
				c.duplicate()
			}
			for range 40 {
				for range 1 + c.random.IntN(12) {
					c.change()
				}
				c.step(c.random.IntN(2) == 0)
			}
			c.ends()
		})
	}
}

// ends checks that nothing changes any more after a few steps, and that the entries are exactly those of the sets then.
func (c *cluster) ends() {
	c.Helper()
	for range 4 {
		c.step(true)
	}
	plan := server().Plan(c.sets, c.stored)
	if diff := cmp.Diff(c.stored, plan.Lists); diff != "" {
		c.Errorf("the entries do not come to rest: %.2000s", diff)
	}
	own, rows := c.index()
	places := 0
	for _, s := range c.sets {
		total := len(rows[s.Name]) + len(own[s.Name])
		at := server()
		switch {
		case s.Status.InForce == nil:
		case !entries.Injects(s):
			if total != 0 {
				c.Errorf("%s injects nothing, and has %d entries", s.Name, total)
			}
		case plan.Entered[s.UID]:
			if total != 1 || own[s.Name] != nil && !cmp.Equal(*own[s.Name][0], at.Entry(s)) {
				c.Errorf("%s has %d entries, or not its own", s.Name, total)
			}
		case !plan.TooMany[s.UID]:
			c.Errorf("%s waits for ever", s.Name)
		}
		if own[s.Name] != nil && s.Status.InForce != nil && s.Status.InForce.Namespace == "" {
			places++
		}
	}
	for _, s := range c.sets {
		if plan.TooMany[s.UID] && s.Status.InForce.Namespace == "" && places < 200 {
			c.Errorf("%s has no place, and only %d sets of all namespaces have one", s.Name, places)
		}
	}
}

// TestPlaceIsGiven adds a set of all namespaces to as many bound ones as there are places: the youngest one gives its
// place when it shares an entry.
func TestPlaceIsGiven(t *testing.T) {
	c := &cluster{T: t}
	for range 256 {
		c.create(false)
	}
	youngest := c.sets[255]
	c.stored = server().Plan(c.sets, c.stored).Lists
	c.create(true)
	wide := c.sets[256]
	for i, want := range []struct{ entered, own, shared bool }{{false, true, true}, {true, false, true}, {true, false, true}} {
		plan := server().Plan(c.sets, c.stored)
		c.stored = plan.Lists
		own, rows := c.index()
		if plan.Entered[wide.UID] != want.entered || plan.TooMany[wide.UID] || !plan.Entered[youngest.UID] ||
			(own[youngest.Name] != nil) != want.own || (len(rows[youngest.Name]) > 0) != want.shared {
			t.Errorf("plan %d: entered %t, too many %t, the youngest has an own entry %t and %d shared ones", i, plan.Entered[wide.UID], plan.TooMany[wide.UID],
				own[youngest.Name] != nil, len(rows[youngest.Name]))
		}
	}
}

// TestReduce checks that sets that are paused or gone have no entries while no authority is known, and that nothing
// else changes.
func TestReduce(t *testing.T) {
	c := &cluster{T: t}
	for range 260 {
		c.create(false)
	}
	at := server()
	at.Client.CABundle = []byte("known")
	c.stored = at.Plan(c.sets, c.stored).Lists
	before := c.stored
	c.stored = server().Reduce(c.sets, c.stored).Lists
	if diff := cmp.Diff(before, c.stored); diff != "" {
		t.Errorf("entries changed: %.2000s", diff)
	}
	c.sets[0].Spec.InjectionStrategy.Paused, c.sets[258].Spec.InjectionStrategy.Paused = true, true
	c.stored = server().Reduce(c.sets[:259], c.stored).Lists
	own, rows := c.index()
	if own[c.sets[0].Name] != nil || rows[c.sets[258].Name] != nil || rows[c.sets[259].Name] != nil || own[c.sets[1].Name] == nil || len(rows[c.sets[257].Name]) != 1 {
		t.Errorf("%d own entries, and groups of %d sets", len(own), len(rows))
	}
	if got := own[c.sets[1].Name]; !cmp.Equal(*got[0], at.Entry(c.sets[1])) {
		t.Errorf("entry %+v", got)
	}
}
