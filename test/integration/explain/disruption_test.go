// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestDisruptionsAsTheAPIServer compares the answers about random pods and budgets with those of the API server to dry runs.
func TestDisruptionsAsTheAPIServer(t *testing.T) {
	w := newWorld(t)
	shared.Apply(t, env.Manifests(t, []string{"config/policies/guards.yaml"})...)
	random := rand.New(rand.NewPCG(48, 0)) //nolint:gosec // a test repeats with the same seed
	first := w.randomPod(random, "first")
	first.Status.Phase = corev1.PodRunning
	first = w.runPod(first)
	w.budget(random, first, true)
	w.Until("the policy is in effect", func() error {
		return await.ErrorIf(w.remove(first) == nil, "the guard does not protect the pod")
	})
	answers := map[string]int{}
	for i := range 60 {
		pod := first
		if i > 0 {
			pod = w.runPod(w.randomPod(random, fmt.Sprintf("game-%d", i)))
		}
		for range []int{0, 1, 1, 1, 2}[random.IntN(5)] {
			w.budget(random, pod, random.IntN(2) == 0)
		}
		for operation, try := range map[string]func(*corev1.Pod) error{"delete": w.remove, "evict": w.evict} {
			refusal := try(pod)
			output, code := w.ask(pod.Name, "--for", operation)
			answers[operation+" "+strings.Fields(output)[0]]++
			if refused := refusal != nil; refused != (code == exit.Failed) || !refused && code != exit.OK {
				t.Errorf("%s: exit code %d, the API server answers %v:\n%s", operation, code, refusal, output)
			}
		}
	}
	counts := fmt.Sprintf("\n%d go now, %d wait, %d never\n", answers["evict now"], answers["evict later"], answers["evict never"])
	if output, code := w.ask("drain", w.node); code != exit.Failed || !strings.Contains(output, counts) {
		t.Errorf("drain: exit code %d, want %q in:\n%s", code, counts, output)
	}
	for _, answer := range []string{"delete now", "delete later", "evict now", "evict later", "evict never"} {
		if answers[answer] < 4 {
			t.Errorf("too few answers are %s: %v", answer, answers)
		}
	}
}

// randomPod returns a pod in a random state, which budgets select by the label case.
func (w world) randomPod(random *rand.Rand, name string) *corev1.Pod {
	phases := []corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodUnknown, corev1.PodPending, corev1.PodFailed}
	ready := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse}[random.IntN(3)]
	pod := builders.Pod(w.Namespace, name).Label("case", name).Node(w.node).Phase(phases[random.IntN(len(phases))]).
		Condition(corev1.PodCondition{Type: corev1.PodReady, Status: ready})
	if random.IntN(6) == 0 {
		pod.Label(v1alpha1.GuardExemptKey, "")
	}
	return pod.Build()
}

// budget creates a budget over the pod, with a random status.
func (w world) budget(random *rand.Rand, pod *corev1.Pod, guard bool) {
	w.Helper()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, GenerateName: pod.Name + "-"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"case": pod.Labels["case"]}},
		},
	}
	if guard {
		budget.Labels = map[string]string{v1alpha1.GuardKey: "true"}
	}
	// Guards must not have it.
	if always := random.IntN(3) == 0; always && !guard {
		budget.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	}
	expect.NoError(w, shared.Client.Create(w.Context(), budget))
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation - int64(random.IntN(4)/3), DisruptionsAllowed: int32(random.IntN(3) / 2),
		CurrentHealthy: int32(random.IntN(3)), DesiredHealthy: int32(random.IntN(3)), ExpectedPods: int32(random.IntN(3)),
	}
	if random.IntN(5) == 0 {
		budget.Status.DisruptionsAllowed = 0
		budget.Status.Conditions = []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "no scale", LastTransitionTime: metav1.Now(),
		}}
	}
	expect.NoError(w, shared.Client.Status().Update(w.Context(), budget))
}

// remove tries to delete the pod.
func (w world) remove(pod *corev1.Pod) error {
	return shared.Client.Delete(w.Context(), pod.DeepCopy(), client.DryRunAll)
}

// evict tries to evict the pod, once: clients try again for a long time.
func (w world) evict(pod *corev1.Pod) error {
	clients, err := kubernetes.NewForConfig(shared.Config)
	expect.NoError(w, err)
	return clients.CoreV1().RESTClient().Post().MaxRetries(0).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
		Body(&policyv1.Eviction{
			TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"}, ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		}).Do(w.Context()).Error()
}

// ask returns what the command prints, and its exit code.
func (w world) ask(args ...string) (string, int) {
	var out, errOut bytes.Buffer
	command := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, "seamark", "test")
	command.SetArgs(append([]string{"explain", "--kubeconfig=" + w.kubeconfig, "--namespace=" + w.Namespace}, args...))
	code := exit.Code(command.ExecuteContext(w.Context()))
	return out.String() + errOut.String(), code
}
