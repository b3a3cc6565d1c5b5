// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/cronjob"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// WorkloadInput is everything that the state of a set or a job depends on, as far as it could be read.
type WorkloadInput struct {
	// Kind is the kind of the object, which apps.kruise.io has.
	Kind string
	// Object is the set or the job.
	Object metav1.Object
	// Nodes are all nodes, and Pods all pods of the namespace. They are read for the kinds that depend on them.
	Nodes []*corev1.Node
	Pods  []*corev1.Pod
	// Jobs are those that the object controls, if it creates jobs.
	Jobs []cronjob.Job
	// Events are those of the object, in any order.
	Events []corev1.Event
	// Lease is that of the controllers, or nil if there is none.
	Lease *coordinationv1.Lease
	// Unread are the resources that could not be read. Their fields are empty.
	Unread map[permission.Resource]permission.Missing
	// SystemNamespace is the namespace of the controllers.
	SystemNamespace string
	// Now is the current time.
	Now time.Time
	// Program is how users call the program seamark.
	Program string
}

// WorkloadExplanation is the answer for one set or job.
type WorkloadExplanation struct {
	// Namespace, Kind and Name identify the object. Namespace is empty for an object of the cluster.
	Namespace string `json:"namespace,omitempty"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	// Settled is whether nothing is wrong and nothing is waited for, as far as this can be checked.
	Settled bool `json:"settled"`
	Answer
}

// workload collects the steps about a set or a job.
type workload struct {
	*explainer
	given WorkloadInput
	// pods are those that the object controls.
	pods []*corev1.Pod
	// set is the view of a set, nil for an object of another kind.
	set *setview.View
}

// Workload explains why a set or a job does nothing, or what it waits for: from its conditions, its pods and nodes, and
// by the functions that plan its steps.
func Workload(given WorkloadInput) WorkloadExplanation {
	object := given.Object
	w := &workload{given: given, explainer: &explainer{in: Input{
		Namespace: object.GetNamespace(), Name: strings.ToLower(given.Kind) + "/" + object.GetName(),
		Lease: given.Lease, Unread: given.Unread, SystemNamespace: given.SystemNamespace, Now: given.Now, Program: given.Program,
	}}}
	if set, ok := setview.Of(object); ok {
		set.Rules.Now = given.Now
		w.set = &set
	}
	for _, pod := range given.Pods {
		if metav1.IsControlledBy(pod, object) {
			w.pods = append(w.pods, pod)
		}
	}
	slices.SortFunc(w.pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	w.following = w.describe()
	w.leader("Controllers", "controller", "workloads", "sets and jobs do not change")
	w.status()
	w.rollout()
	w.parts()
	x := WorkloadExplanation{Namespace: object.GetNamespace(), Kind: given.Kind, Name: object.GetName()}
	x.settle(w.explainer)
	return x
}

// settle sets the answer from the steps.
func (x *WorkloadExplanation) settle(e *explainer) {
	if x.Answer = e.answer(); x.Conclusion != "" {
		return
	}
	x.Conclusion, x.Settled = "Settled: nothing is wrong, and nothing is waited for", true
	if unknown := e.first(Unknown); unknown != nil {
		x.Conclusion, x.Next = "Settled, as far as it could be read. Not checked: "+strings.Join(e.unchecked(), ", "), unknown.Next
	}
}

// hook explains the objects of a kind.
type hook struct {
	// parts adds the steps about what an object consists of. The default is podsOf.
	parts func(w *workload)
	// severity returns the severity of a condition of an object. The default is planning.FailureSeverity.
	severity func(c *metav1.Condition) planning.Severity
}

// hooks returns the hooks by kind.
func hooks() map[string]hook {
	return map[string]hook{
		"DaemonSet":       {parts: about((*workload).daemonSet)},
		"BroadcastJob":    {about((*workload).broadcastJob), broadcastjob.ConditionSeverity},
		"ImagePullJob":    {about((*workload).imagePullJob), imagepull.ConditionSeverity},
		"AdvancedCronJob": {about((*workload).cronJob), cronjob.ConditionSeverity},
		"SidecarSet":      {about((*workload).sidecarSet), accept.ConditionSeverity},
	}
}

// about returns what adds the steps about an object of the type.
func about[T metav1.Object](add func(w *workload, object T)) func(*workload) {
	return func(w *workload) {
		if object, ok := w.given.Object.(T); ok {
			add(w, object)
		}
	}
}

// rollout adds the step about how far the rollout of a set is.
func (w *workload) rollout() {
	if w.set == nil || w.given.Object.GetDeletionTimestamp() != nil {
		return
	}
	state := w.set.State()
	s := Step{Title: "Rollout", Verdict: Waiting, Text: state.Message, Next: w.seamark("rollout status " + w.in.Name)}
	switch state.Phase {
	case rollout.NotObserved: // The step about the generation says it.
		return
	case rollout.Complete:
		s.Verdict, s.Next = OK, ""
	case rollout.Stalled:
		s.Verdict, s.Next = Problem, w.cause()
	case rollout.Paused:
		s.Next = w.seamark("rollout resume " + w.in.Name)
	}
	w.add(s)
}

// parts adds the steps about what the object consists of.
func (w *workload) parts() {
	if add := hooks()[w.given.Kind].parts; add != nil {
		add(w)
	} else {
		w.podsOf()
	}
}

// status adds the steps about whether the object was handled, and its conditions.
func (w *workload) status() {
	var stored struct {
		Status struct {
			ObservedGeneration int64              `json:"observedGeneration"`
			Conditions         []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	// The conditions of all kinds have these fields. Objects that were read can be written.
	if data, err := json.Marshal(w.given.Object); err == nil {
		_ = json.Unmarshal(data, &stored)
	}
	object := w.given.Object
	if deleted := object.GetDeletionTimestamp(); deleted != nil {
		w.add(Step{
			Title: "Deletion", Verdict: Waiting, Text: fmt.Sprintf(
				"it has been deleting for %s, and waits for its finalizers: %s", w.age(deleted.Time), list(object.GetFinalizers()),
			), Next: w.describe(),
		})
	}
	if seen := stored.Status.ObservedGeneration; seen < object.GetGeneration() {
		w.late(podview.Edited(object), "Generation", fmt.Sprintf(
			"the last change was not handled: the generation is %d, and the status is that of generation %d", object.GetGeneration(), seen,
		),
			w.system("logs -l app.kubernetes.io/component=workloads --tail=50"), fmt.Sprintf(
				"the configuration of seamark-workloads must enable the controller of a %s", w.given.Kind,
			))
	}
	for i := range stored.Status.Conditions {
		c := &stored.Status.Conditions[i]
		if severity := w.severity(c); severity != "" {
			s := Step{Title: "Condition " + c.Type, Verdict: severity, Text: fmt.Sprintf(
				"%s (%s) for %s: %s", c.Status, c.Reason, w.age(c.LastTransitionTime.Time), c.Message,
			), Next: w.shows(c)}
			if c.Type == planning.PodsGuarded {
				w.guarded(&s, c.Message)
			}
			w.add(s)
		}
	}
}

// guarded adds to the step how the first pod that a guard protects gets free.
func (w *workload) guarded(s *Step, message string) {
	budget, pod := guard.FirstOf(message)
	if budget == "" {
		return
	}
	// A SidecarSet belongs to no namespace: its message has those of the pods.
	namespace, name, found := strings.Cut(pod, "/")
	if !found {
		namespace, name = w.in.Namespace, pod
	}
	s.Evidence = []string{
		"a pod is free when its labels no longer match the selector of the budget",
		fmt.Sprintf("to release one at once: kubectl -n %s label pod %s %s=", namespace, name, v1alpha1.GuardExemptKey),
	}
	s.Next = fmt.Sprintf("kubectl -n %s describe pdb %s", namespace, budget)
}

// shows returns the command that shows the cause of a condition: a pod, if the condition is about how far the pods are.
func (w *workload) shows(c *metav1.Condition) string {
	switch c.Type {
	case v1alpha1.ConditionStalled, step.Progressing, v1alpha1.BroadcastJobComplete:
		return w.cause()
	}
	return w.describe()
}

// cause returns the command that shows why the first pod by name that needs attention is not as it should be, or else the object.
func (w *workload) cause() string {
	for _, pod := range w.pods {
		if _, wrong := w.stateOf(pod); wrong {
			return inspect(pod.Namespace, pod)
		}
	}
	return w.describe()
}

// severity returns the severity of a condition of the object.
func (w *workload) severity(c *metav1.Condition) planning.Severity {
	if w.set != nil {
		return w.set.ConditionSeverity(c)
	}
	if of := hooks()[w.given.Kind].severity; of != nil {
		return of(c)
	}
	return planning.FailureSeverity(c)
}

// describe returns the command that shows the object with its events.
func (w *workload) describe() string {
	if w.in.Namespace == "" {
		return "kubectl describe " + w.resource()
	}
	return w.kubectl("describe %s", w.resource())
}

// resource returns the object as kubectl names it. Other groups have some of the kinds, too.
func (w *workload) resource() string {
	return fmt.Sprintf("%ss.%s/%s", strings.ToLower(w.given.Kind), v1alpha1.GroupName, w.given.Object.GetName())
}
