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
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/daemonset"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
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
			Pods:    func(owner.Key) []*corev1.Pod { return slices.Collect(maps.Values(p.pods)) },
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
	spec.UpdateStrategy = strategy(r)
	if r.IntN(2) == 0 {
		spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
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
	spec.ProgressDeadlineSeconds = model.OneOf(r, nil, new(int32(30)))
	if r.IntN(4) == 0 {
		set.Annotations[v1alpha1.ExemptUnreachableNodesKey] = "true"
	}
	return set
}

// strategy returns a strategy of any type.
func strategy(r *rand.Rand) v1alpha1.DaemonSetUpdateStrategy {
	s := v1alpha1.DaemonSetUpdateStrategy{
		Type: model.OneOf(r, v1alpha1.RollingUpdateDaemonSetStrategyType, v1alpha1.RollingUpdateDaemonSetStrategyType,
			v1alpha1.RollingUpdateDaemonSetStrategyType, v1alpha1.OnDeleteDaemonSetStrategyType),
		RollingUpdate: &v1alpha1.RollingUpdateDaemonSet{
			Type: model.OneOf(r, v1alpha1.StandardRollingUpdateType, v1alpha1.InplaceRollingUpdateType), MaxUnavailable: new(intstr.FromInt32(1)),
		},
	}
	if r.IntN(3) == 0 {
		s.RollingUpdate = &v1alpha1.RollingUpdateDaemonSet{MaxSurge: new(model.OneOf(r, intstr.FromInt32(1), intstr.FromString("50%")))}
	}
	return s
}

func rolling(set *v1alpha1.DaemonSet) *v1alpha1.RollingUpdateDaemonSet {
	return set.Spec.UpdateStrategy.RollingUpdate
}

func users() []model.User {
	template := func(set *v1alpha1.DaemonSet) *corev1.PodTemplateSpec { return &set.Spec.Template }
	return []model.User{
		model.EditImages(6, template), model.EditEnvironment(1, template), model.EditResources(4, template), model.Policy(1), model.Ungate(1),
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
		model.Edit("type", 1, func(w *model.World, set *v1alpha1.DaemonSet) string {
			set.Spec.UpdateStrategy = strategy(w.Rand)
			return fmt.Sprint(set.Spec.UpdateStrategy.Type, rolling(set).Type, rolling(set).MaxSurge)
		}),
		model.Edit("minReadySeconds", 1, func(w *model.World, set *v1alpha1.DaemonSet) string {
			set.Spec.MinReadySeconds = model.OneOf(w.Rand, int32(0), 5)
			return fmt.Sprint(set.Spec.MinReadySeconds)
		}),
		model.Edit("placement", 1, func(w *model.World, set *v1alpha1.DaemonSet) string {
			set.Spec.Template.Spec.Tolerations = model.OneOf(w.Rand, nil, []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}})
			return fmt.Sprint(set.Spec.Template.Spec.Tolerations)
		}),
		model.KillPod(1), model.EvictPod(1), model.Quota(1),
		model.LabelPod(1, "app", "agent", "other"), model.GuardPod(2),
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

func config(seed uint64) model.Config {
	p := &planner{}
	return model.Config{
		Planner: p, Users: users(), HookLabel: hookLabel,
		New: func(r *rand.Rand) model.Object {
			set := newSet(r).(*v1alpha1.DaemonSet)
			model.StayInService(seed, &set.Spec.Template)
			return set
		},
		Program: func(w *model.World) { collectPods(w) },
		Invariants: []model.Invariant{
			model.HooksHold(func(set model.Object) *pub.LifecycleHook {
				if hooks := set.(*v1alpha1.DaemonSet).Spec.Lifecycle; hooks != nil {
					return hooks.PreDelete
				}
				return nil
			}),
			model.NoOrphan(func(model.Object) labels.Selector { return labels.SelectorFromSet(labels.Set{"app": "agent"}) }),
			model.InBatches, model.OutOfService,
		},
		Steps: []func(*model.State, *model.Step) error{p.budgetIsKept, p.partitionIsKept, p.createsWhereOneFits},
		Rest:  p.exactAtRest,
	}
}

func FuzzModel(f *testing.F) { model.Fuzz(f, 80, config) }

// FuzzModelInPlace is FuzzModel for sets that update pods in place, whose images and resources change often, and whose nodes
// may have no room for the resources.
func FuzzModelInPlace(f *testing.F) {
	model.Fuzz(f, 40, func(seed uint64) model.Config {
		c := config(seed)
		template := func(set *v1alpha1.DaemonSet) *corev1.PodTemplateSpec { return &set.Spec.Template }
		c.Users = append(c.Users, model.EditImages(20, template), model.EditResources(20, template), model.Ungate(10), model.Policy(2))
		c.New = func(r *rand.Rand) model.Object {
			set := newSet(r).(*v1alpha1.DaemonSet)
			set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			set.Spec.UpdateStrategy = v1alpha1.DaemonSetUpdateStrategy{RollingUpdate: &v1alpha1.RollingUpdateDaemonSet{
				Type: v1alpha1.InplaceRollingUpdateType, MaxUnavailable: new(intstr.FromInt32(2)),
			}}
			return set
		}
		if c.Chaos = 600; seed%2 == 0 {
			c.Faults = &model.Faults{Involuntary: true}
		}
		return c
	}, 52, 738, 884)
}
