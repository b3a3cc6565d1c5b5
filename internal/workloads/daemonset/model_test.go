// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/daemonset"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
	"github.com/seamark-dev/seamark/test/model"
)

const (
	hookLabel = "example.com/hook"
	// nodesKey is the annotation of the set that contains the nodes of the run: the model has no nodes.
	nodesKey = "example.com/nodes"
)

// planner follows the events between two views of a leader, and plans. It starts again when another leader plans, whose
// view may be older.
type planner struct {
	slots *daemonset.Slots
	pods  map[types.UID]*corev1.Pod
	nodes map[string]*corev1.Node
	set   types.UID
}

func nodesOf(set *v1alpha1.DaemonSet) map[string]*corev1.Node {
	all := map[string]*corev1.Node{}
	if err := json.Unmarshal([]byte(set.Annotations[nodesKey]), &all); err != nil {
		panic(err)
	}
	return all
}

func version(pod *corev1.Pod) int {
	n, err := strconv.Atoi(pod.ResourceVersion)
	if err != nil {
		panic(err)
	}
	return n
}

func (p *planner) Plan(view *model.State) (model.Step, error) {
	set := setOf(view)
	nodes, pods := nodesOf(set), map[types.UID]*corev1.Pod{}
	in := model.InputOf(view)
	in.Pods = nil
	latest := 0
	for _, pod := range view.Pods {
		pod = trim.Pod([]schema.GroupKind{daemonset.Kind().GroupKind()})(pod)
		switch latest = max(latest, version(pod)); {
		case metav1.IsControlledBy(pod, set):
			pods[pod.UID] = pod
		case metav1.GetControllerOf(pod) == nil && labels.SelectorFromSet(labels.Set{"app": "agent"}).Matches(labels.Set(pod.Labels)):
			in.Pods = append(in.Pods, pod)
		}
	}
	p.follow(set, nodes, pods)
	if err := p.slots.Check(set.UID, slices.Collect(maps.Values(pods)), slices.Collect(maps.Values(nodes)), view.Now); err != nil {
		return model.Step{}, err
	}
	before := set.DeepCopy()
	out, err := p.slots.Plan(set, in)
	if err != nil {
		return model.Step{}, err
	}
	if !equality.Semantic.DeepEqual(before, set) {
		return model.Step{}, errors.New("Plan changed its input")
	}
	kind := daemonset.Set(p.slots)
	return model.Step{Actions: out.Actions, Status: func(failures []planning.Failure) model.Object {
		next, status := set.DeepCopy(), out.Status
		kind.Failed(&status, failures, view.Now)
		next.Status = status
		return next
	}}, once(set, &out.Actions)
}

// follow calls the methods for the events since the last view.
func (p *planner) follow(set *v1alpha1.DaemonSet, nodes map[string]*corev1.Node, pods map[types.UID]*corev1.Pod) {
	older := p.slots == nil || p.set != set.UID
	for uid, pod := range pods {
		older = older || p.pods[uid] != nil && version(p.pods[uid]) > version(pod)
	}
	if older {
		p.slots = daemonset.NewSlots(daemonset.Cache{
			Nodes:   func() []*corev1.Node { return slices.Collect(maps.Values(p.nodes)) },
			Pods:    func(types.UID) []*corev1.Pod { return slices.Collect(maps.Values(p.pods)) },
			Version: func() string { return "" },
		})
	} else {
		for uid, pod := range p.pods {
			if pods[uid] == nil {
				p.slots.Pod(pod, nil)
			}
		}
		for uid, pod := range pods {
			if before := p.pods[uid]; before == nil || before.ResourceVersion != pod.ResourceVersion {
				p.slots.Pod(before, pod)
			}
		}
		for name, node := range p.nodes {
			if nodes[name] == nil {
				p.slots.Node(node, nil)
			}
		}
		for name, node := range nodes {
			p.slots.Node(p.nodes[name], node)
		}
	}
	p.set, p.pods, p.nodes = set.UID, pods, nodes
}

// once returns an error if the step does more than one thing on a node.
func once(set *v1alpha1.DaemonSet, a *planning.Actions) error {
	seen := map[string]string{}
	note := func(pod *corev1.Pod, what string) error {
		node := nodefit.Target(pod)
		if other := seen[node]; other != "" && node != "" && (other != "delete" || what != "delete") && (other != "patch" || what != "patch") {
			return fmt.Errorf("node %s: %s and %s in one step", node, other, what)
		}
		seen[node] = what
		return nil
	}
	var errs []error
	for i := range a.Patches {
		if a.Patches[i].Controller == planning.KeepController {
			errs = append(errs, note(a.Patches[i].Pod, "patch"))
		}
	}
	for i := range a.Deletes {
		errs = append(errs, note(a.Deletes[i].Pod, "delete"))
	}
	for _, pod := range a.Creates {
		errs = append(errs, note(pod, "create"))
	}
	return errors.Join(errs...)
}

func setOf(view *model.State) *v1alpha1.DaemonSet { return view.Set.(*v1alpha1.DaemonSet) }

func newNode(r *rand.Rand, name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"pool": model.OneOf(r, "a", "a", "a", "b"), "wave": model.OneOf(r, "1", "1", "2"),
	}}}
	taint := func(key string, effect corev1.TaintEffect) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
	}
	switch r.IntN(10) {
	case 0:
		taint("dedicated", corev1.TaintEffectNoSchedule)
	case 1:
		taint("dedicated", corev1.TaintEffectNoExecute)
	case 2:
		taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	case 3:
		taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	}
	return node
}

func editNodes(set *v1alpha1.DaemonSet, change func(nodes map[string]*corev1.Node)) {
	nodes := nodesOf(set)
	change(nodes)
	encoded, err := json.Marshal(nodes)
	if err != nil {
		panic(err)
	}
	set.Annotations[nodesKey] = string(encoded)
}

func newSet(r *rand.Rand) model.Object {
	set := &v1alpha1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: model.Namespace, Name: "agent", Annotations: map[string]string{nodesKey: "{}"}},
	}
	editNodes(set, func(nodes map[string]*corev1.Node) {
		for i := range 1 + r.IntN(5) {
			name := fmt.Sprintf("node-%d", i)
			nodes[name] = newNode(r, name)
		}
	})
	spec := &set.Spec
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	spec.Template.Labels = map[string]string{"app": "agent"}
	spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "app:1"}}
	if r.IntN(2) == 0 {
		spec.Template.Spec.NodeSelector = map[string]string{"pool": "a"}
	}
	spec.MinReadySeconds = model.OneOf(r, int32(0), 5)
	spec.BurstReplicas = model.OneOf(r, nil, new(intstr.FromInt32(1)), new(intstr.FromString("50%")))
	if r.IntN(3) == 0 {
		spec.ScaleStrategy = &v1alpha1.DaemonSetScaleStrategy{PartitionedScaling: true}
	}
	spec.UpdateStrategy.Type = model.OneOf(r, v1alpha1.RollingUpdateDaemonSetStrategyType, v1alpha1.RollingUpdateDaemonSetStrategyType,
		v1alpha1.RollingUpdateDaemonSetStrategyType, v1alpha1.OnDeleteDaemonSetStrategyType)
	spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdateDaemonSet{
		Type: model.OneOf(r, v1alpha1.StandardRollingUpdateType, v1alpha1.InplaceRollingUpdateType), MaxUnavailable: new(intstr.FromInt32(1)),
	}
	if r.IntN(3) == 0 {
		spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdateDaemonSet{MaxSurge: new(model.OneOf(r, intstr.FromInt32(1), intstr.FromString("50%")))}
	}
	if r.IntN(3) == 0 {
		spec.Template.Spec.Containers = append(spec.Template.Spec.Containers, model.Side())
	}
	if r.IntN(2) == 0 {
		spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{
			LabelsHandler: map[string]string{hookLabel: "true"}, MarkPodNotReady: r.IntN(2) == 0,
		}}
		spec.Template.Labels[hookLabel] = "true"
	}
	if r.IntN(4) == 0 {
		set.Annotations[v1alpha1.ExemptUnreachableNodesKey] = "true"
	}
	return set
}

func rolling(set *v1alpha1.DaemonSet) *v1alpha1.RollingUpdateDaemonSet {
	return set.Spec.UpdateStrategy.RollingUpdate
}

func users() []model.User {
	template := func(set *v1alpha1.DaemonSet) *corev1.PodTemplateSpec { return &set.Spec.Template }
	return []model.User{
		model.EditImages(6, template), model.EditEnvironment(1, template),
		model.Edit("nodes", 4, func(w *model.World, set *v1alpha1.DaemonSet) string {
			name := fmt.Sprintf("node-%d", w.Rand.IntN(6))
			editNodes(set, func(nodes map[string]*corev1.Node) {
				if delete(nodes, name); w.Rand.IntN(4) > 0 {
					nodes[name] = newNode(w.Rand, name)
				}
			})
			return name
		}),
		model.Edit("partition", 2, func(w *model.World, set *v1alpha1.DaemonSet) string {
			rolling(set).Partition = model.OneOf(w.Rand, nil, new(intstr.FromInt32(2)), new(intstr.FromString("50%")))
			return rolling(set).Partition.String()
		}),
		model.Edit("selector", 1, func(w *model.World, set *v1alpha1.DaemonSet) string {
			rolling(set).Selector = model.OneOf(w.Rand, nil, nil, &metav1.LabelSelector{MatchLabels: map[string]string{"wave": "1"}})
			return rolling(set).Selector.String()
		}),
		model.Edit("paused", 1, func(w *model.World, set *v1alpha1.DaemonSet) string {
			rolling(set).Paused = new(w.Rand.IntN(3) == 0)
			return strconv.FormatBool(*rolling(set).Paused)
		}),
		model.Edit("budget", 2, func(w *model.World, set *v1alpha1.DaemonSet) string {
			unavailable := model.OneOf(w.Rand, intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("60%"))
			if surge := rolling(set).MaxSurge; surge != nil {
				*surge = unavailable
			} else {
				rolling(set).MaxUnavailable = &unavailable
			}
			return unavailable.String()
		}),
		model.Edit("placement", 1, func(w *model.World, set *v1alpha1.DaemonSet) string {
			set.Spec.Template.Spec.Tolerations = model.OneOf(w.Rand, nil, []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}})
			return fmt.Sprint(set.Spec.Template.Spec.Tolerations)
		}),
		model.KillPod(1), model.EvictPod(1), model.Quota(1),
		model.LabelPod(1, "app", "agent", "other"),
		{Name: "collect pods", Weight: 6, Do: collectPods},
	}
}

// collectPods is the garbage collector of pods whose node is gone.
func collectPods(w *model.World) string {
	nodes := nodesOf(setOf(w.State()))
	for _, pod := range w.State().Pods {
		if pod.Spec.NodeName != "" && nodes[pod.Spec.NodeName] == nil && !planning.Terminating(pod) {
			w.DeletePod(pod.Name)
			return pod.Name
		}
	}
	return ""
}

func config(uint64) model.Config {
	p := &planner{}
	return model.Config{
		Planner: p, New: newSet, Users: users(), HookLabel: hookLabel,
		Program: func(w *model.World) { collectPods(w) },
		Invariants: []model.Invariant{
			model.HooksHold(func(set model.Object) *pub.LifecycleHook {
				if hooks := set.(*v1alpha1.DaemonSet).Spec.Lifecycle; hooks != nil {
					return hooks.PreDelete
				}
				return nil
			}),
			model.NoOrphan(func(model.Object) labels.Selector { return labels.SelectorFromSet(labels.Set{"app": "agent"}) }),
			model.InBatches,
		},
		Steps: []func(*model.State, *model.Step) error{p.budgetIsKept, p.partitionIsKept, p.createsWhereOneFits},
		Rest:  p.exactAtRest,
	}
}

func FuzzModel(f *testing.F) { model.Fuzz(f, 80, config) }

// fitting returns the pods of each node that fits, by name.
func (p *planner) fitting(view *model.State) map[string][]*corev1.Pod {
	set := setOf(view)
	pods := map[string][]*corev1.Pod{}
	for name, node := range nodesOf(set) {
		if fit, _ := p.slots.FitOf(set.UID, node); fit == nodefit.Yes {
			pods[name] = nil
		}
	}
	for _, pod := range view.Pods {
		if _, fits := pods[nodefit.Target(pod)]; fits && metav1.IsControlledBy(pod, set) && pod.Labels["app"] == "agent" {
			pods[nodefit.Target(pod)] = append(pods[nodefit.Target(pod)], pod)
		}
	}
	return pods
}

// budgetIsKept checks that a step that takes down pods of old revisions that serve leaves as many nodes with a pod that
// serves as the budget demands: without surge, all but maxUnavailable of those that fit and are not exempt, and with surge
// each one from which the step deletes a pod.
func (p *planner) budgetIsKept(view *model.State, step *model.Step) error {
	set := setOf(view)
	down := map[types.UID]bool{}
	var nodes []string
	for _, d := range step.Deletes {
		if model.Serving(d.Pod) && d.Reason == "Update" {
			down[d.Pod.UID] = true
			nodes = append(nodes, nodefit.Target(d.Pod))
		}
	}
	for i := range step.Patches {
		patch := &step.Patches[i]
		if model.Serving(patch.Pod) && len(patch.Images) > 0 {
			down[patch.Pod.UID] = true
			nodes = append(nodes, nodefit.Target(patch.Pod))
		}
	}
	if len(down) == 0 {
		return nil
	}
	pods := p.fitting(view)
	served := func(node string) bool {
		return slices.ContainsFunc(pods[node], func(pod *corev1.Pod) bool { return model.Serving(pod) && !down[pod.UID] })
	}
	if rolling(set).MaxSurge != nil {
		for _, node := range nodes {
			if !served(node) {
				return fmt.Errorf("takes down the pod of node %s although no other serves", node)
			}
		}
		return nil
	}
	budget, err := intstr.GetScaledValueFromIntOrPercent(rolling(set).MaxUnavailable, len(pods), true)
	if err != nil {
		return err
	}
	unserved := 0
	for node := range pods {
		// An old pod that does not serve may be replaced whatever is unavailable, and does not count before it is.
		old := slices.ContainsFunc(pods[node], func(pod *corev1.Pod) bool { return planning.Active(pod) && !model.Serving(pod) })
		exempt := set.Annotations[v1alpha1.ExemptUnreachableNodesKey] == "true" && unreachable(nodesOf(set)[node])
		if !served(node) && !exempt && (!old || slices.Contains(nodes, node)) {
			unserved++
		}
	}
	if unserved > max(budget, 1) {
		return fmt.Errorf("takes down pods of %v, so that %d of %d nodes have none that serves, want at most %d", nodes, unserved, len(pods), budget)
	}
	return nil
}

func unreachable(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnreachable })
}

// partitionIsKept checks that a step does not update more nodes than the partition and the selector permit.
func (p *planner) partitionIsKept(view *model.State, step *model.Step) error {
	set := setOf(view)
	update := rolling(set)
	for i := range step.Patches {
		patch := &step.Patches[i]
		if len(patch.Images) == 0 || patch.Reason == "NextBatch" {
			continue
		}
		if _, reached := p.slots.FitOf(set.UID, nodesOf(set)[nodefit.Target(patch.Pod)]); !reached && strings.HasPrefix(patch.Reason, "Updating") {
			return fmt.Errorf("updates pod %s, whose node the selector does not match", patch.Pod.Name)
		}
	}
	if update.Paused != nil && *update.Paused || set.Spec.UpdateStrategy.Type == v1alpha1.OnDeleteDaemonSetStrategyType {
		for _, d := range step.Deletes {
			if pods := p.fitting(view)[nodefit.Target(d.Pod)]; d.Reason == "Update" && len(pods) < 2 && model.Serving(d.Pod) {
				return fmt.Errorf("updates pod %s although the update is stopped", d.Pod.Name)
			}
		}
	}
	return nil
}

// createsWhereOneFits checks that a step creates pods only on nodes that fit, and no second one except for surge.
func (p *planner) createsWhereOneFits(view *model.State, step *model.Step) error {
	pods := p.fitting(view)
	for _, pod := range step.Creates {
		node := nodefit.Target(pod)
		existing, fits := pods[node]
		if !fits || len(existing) > 0 && rolling(setOf(view)).MaxSurge == nil || len(existing) > 1 {
			return fmt.Errorf("creates pod %s on node %s, which fits: %t, and has %d pods\n%s", pod.Name, node, fits, len(existing), model.Describe(view))
		}
	}
	return nil
}

// exactAtRest checks that each node that fits has one pod that serves, and others have none that they must not have.
func (p *planner) exactAtRest(view *model.State) error {
	set := setOf(view)
	scale := set.Spec.ScaleStrategy
	old, missing := 0, 0
	pods := p.fitting(view)
	for node, on := range pods {
		if len(on) == 0 && scale != nil && scale.PartitionedScaling {
			missing++
			continue
		}
		if len(on) != 1 || !model.Serving(on[0]) {
			return fmt.Errorf("node %s has %d pods", node, len(on))
		}
		if on[0].Labels["controller-revision-hash"] != set.Status.DaemonSetHash {
			old++
		}
	}
	partition := 0
	if rolling(set).Partition != nil {
		partition, _ = intstr.GetScaledValueFromIntOrPercent(rolling(set).Partition, len(pods), true)
	}
	if missing+old > partition && missing > 0 {
		return fmt.Errorf("%d nodes have no pod, and %d an old one: the partition is %d", missing, old, partition)
	}
	stopped := set.Spec.UpdateStrategy.Type == v1alpha1.OnDeleteDaemonSetStrategyType || rolling(set).Paused != nil && *rolling(set).Paused ||
		rolling(set).Selector != nil
	if old > partition && !stopped {
		return fmt.Errorf("%d nodes have an old pod, want at most %d", old, partition)
	}
	for _, pod := range view.Pods {
		node := nodesOf(set)[nodefit.Target(pod)]
		if _, fits := pods[nodefit.Target(pod)]; fits || !metav1.IsControlledBy(pod, set) {
			continue
		}
		if node == nil {
			return fmt.Errorf("pod %s remains, whose node is gone", pod.Name)
		}
		if fit, _ := p.slots.FitOf(set.UID, node); fit == nodefit.No {
			return fmt.Errorf("pod %s remains on node %s, which does not fit", pod.Name, node.Name)
		}
	}
	s := set.Status
	if int(s.DesiredNumberScheduled) != len(pods) || int(s.NumberAvailable) != len(pods)-missing || int(s.UpdatedNumberScheduled) != len(pods)-missing-old {
		return fmt.Errorf("status is %+v with %d nodes, %d old pods and %d missing", s, len(pods), old, missing)
	}
	return nil
}
