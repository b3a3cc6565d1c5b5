// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/certificates"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/controller"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestSidecarSets runs the programs, and what they do for sets, at the same time.
func TestSidecarSets(t *testing.T) {
	t.Parallel()
	i := install(t, env.Start(t), certificates.DefaultLifetimes())
	for name, test := range map[string]func(*testing.T, *installation){
		"revisions":        testRevisions,
		"named revisions":  testNamedRevisions,
		"conflict":         testConflict,
		"at the same time": testSimultaneous,
		"invalid":          testInvalid,
		"not checked":      testNotChecked,
		"white list":       testWhiteList,
		"update":           testUpdate,
		"uninjected":       testUninjected,
		"together":         testTogether,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, i)
		})
	}
}

// newSet returns a set of one container for a new namespace.
func newSet(t *testing.T, i *installation, name string, edit func(*v1alpha1.SidecarSetSpec)) *v1alpha1.SidecarSet {
	set := sidecarSet(name, edit)
	set.Spec.Namespace = i.Env.Namespace(t)
	return set
}

// image returns a check for the image of the container.
func image(container, want string) func(*corev1.Pod, error) error {
	return func(p *corev1.Pod, err error) error {
		if err != nil {
			return err
		}
		for _, c := range p.Spec.Containers {
			if c.Name == container && c.Image == want {
				return nil
			}
		}
		return fmt.Errorf("no container %s with image %s: %v", container, want, p.Spec.Containers)
	}
}

func testRevisions(t *testing.T, i *installation) {
	set := i.apply(newSet(t, i, "revised", nil))
	i.injects(t, set)
	p := pod(set.Spec.Namespace, "game")
	i.eventually(t, "the first revision is injected", p, has("revised server"))
	injected := p.DeepCopy()
	i.Create(injected)
	stamps := injected.Annotations[v1alpha1.SidecarSetHashKey]
	if !strings.Contains(stamps, `"controllerRevision":"`+set.Status.LatestRevision+`"`) {
		t.Errorf("annotation %s, want revision %s", stamps, set.Status.LatestRevision)
	}
	first := set.Status.LatestRevision
	revision := &appsv1.ControllerRevision{}
	expect.NoError(t, i.Client.Get(t.Context(), client.ObjectKey{Namespace: env.SystemNamespace, Name: first}, revision))
	i.edit(set, func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Image = "revised:2" })
	i.injects(t, set)
	i.eventually(t, "the second revision is injected", p, image("revised", "revised:2"))
	// Clients of OpenKruise compare the hashes of the set with those of the pod.
	i.eventually(t, "the set has the hashes of its revision", p, func(p *corev1.Pod, err error) error {
		stored := &v1alpha1.SidecarSet{}
		if err := errors.Join(err, i.Client.Get(t.Context(), client.ObjectKeyFromObject(set), stored)); err != nil {
			return err
		}
		full, withoutImage := inject.Of(p, set.Name).Hash, inject.WithoutImage(p, set.Name)
		if full == "" || stored.Annotations[v1alpha1.SidecarSetHashKey] != full || stored.Annotations[v1alpha1.SidecarSetHashWithoutImageKey] != withoutImage {
			return fmt.Errorf("annotations %v, want %s and %s", stored.Annotations, full, withoutImage)
		}
		return await.ErrorIf(stored.Generation != 2, "generation %d, want 2: annotations do not change it", stored.Generation)
	})
	// The first content again is the first revision with a higher number.
	i.edit(set, func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Image = "revised:1" })
	i.injects(t, set)
	i.Get(revision)
	if set.Status.LatestRevision != first || revision.Revision != 3 {
		t.Errorf("revision %s with number %d, want %s with 3", set.Status.LatestRevision, revision.Revision, first)
	}
	i.edit(set, func(s *v1alpha1.SidecarSet) { s.Spec.InjectionStrategy.Paused = true })
	i.await(t, set, v1alpha1.SidecarSetInjecting, metav1.ConditionFalse, "Paused")
	i.eventually(t, "a paused set injects nothing", p, has("server"))
	i.edit(set, func(s *v1alpha1.SidecarSet) { s.Spec.InjectionStrategy.Paused = false })
	i.injects(t, set)
	i.eventually(t, "it injects again", p, has("revised server"))
	// A deleted revision is written again.
	i.Delete(revision)
	i.eventually(t, "the revision exists again", p, func(_ *corev1.Pod, err error) error {
		return errors.Join(err, i.Client.Get(t.Context(), client.ObjectKeyFromObject(revision), &appsv1.ControllerRevision{}))
	})
	i.Delete(set)
	i.eventually(t, "a deleted set has no entry", p, func(p *corev1.Pod, err error) error {
		if entry := i.stored(t, set.Name); entry != nil {
			return errors.New("it has")
		}
		return has("server")(p, err)
	})
}

func testNamedRevisions(t *testing.T, i *installation) {
	version := func(name, image string, named *v1alpha1.SidecarSetInjectRevision) func(*v1alpha1.SidecarSet) {
		return func(s *v1alpha1.SidecarSet) {
			s.Labels = map[string]string{v1alpha1.SidecarSetCustomVersionLabel: name}
			s.Spec.Containers[0].Image, s.Spec.InjectionStrategy.Revision = image, named
		}
	}
	custom := func(name string) *v1alpha1.SidecarSetInjectRevision {
		return &v1alpha1.SidecarSetInjectRevision{CustomVersion: &name}
	}
	set := newSet(t, i, "named", nil)
	// A new set may name its own version.
	version("v1", "named:1", custom("v1"))(set)
	i.apply(set)
	i.injects(t, set)
	p := pod(set.Spec.Namespace, "game")
	i.eventually(t, "v1 is injected", p, image("named", "named:1"))
	first := set.Status.LatestRevision
	i.edit(set, version("v2", "named:2", custom("v1")))
	i.injects(t, set)
	i.eventually(t, "the named v1 is injected", p, image("named", "named:1"))
	if set.Status.InForce.NamedRevision != first || set.Status.LatestRevision == first {
		t.Errorf("in force %+v, latest %s", set.Status.InForce, set.Status.LatestRevision)
	}
	// A version that does not exist leaves the last choice in force, also for what else changed.
	i.edit(set, version("v3", "named:3", custom("v9")))
	refused := i.await(t, set, v1alpha1.SidecarSetAccepted, metav1.ConditionFalse, string(accept.RevisionNotFound))
	if want := `spec.injectionStrategy.revision.customVersion: "v9" is not found: the set has v1, v2`; !strings.Contains(refused.Message, want) {
		t.Errorf("message %q, want %q", refused.Message, want)
	}
	i.eventually(t, "v1 stays in force", p, image("named", "named:1"))
	// So does the name of the revision of another set.
	other := i.apply(newSet(t, i, "foreign", nil))
	i.injects(t, other)
	i.edit(set, version("v3", "named:3", &v1alpha1.SidecarSetInjectRevision{RevisionName: &other.Status.LatestRevision}))
	i.await(t, set, v1alpha1.SidecarSetAccepted, metav1.ConditionFalse, string(accept.RevisionNotFound))
	i.edit(set, version("v3", "named:3", nil))
	i.injects(t, set)
	i.eventually(t, "the latest is injected", p, image("named", "named:3"))
	// Half of the pods get the named revision.
	half := custom("v1")
	half.Policy = v1alpha1.PartialSidecarSetInjectRevisionPolicy
	i.edit(set, func(s *v1alpha1.SidecarSet) {
		version("v3", "named:3", half)(s)
		s.Spec.UpdateStrategy.Partition = new(intstr.FromString("50%"))
	})
	i.injects(t, set)
	count := map[string]int{}
	for range 100 {
		created := p.DeepCopy()
		expect.NoError(t, i.Client.Create(t.Context(), created, client.DryRunAll))
		count[created.Spec.Containers[0].Image]++
	}
	if count["named:1"] < 20 || count["named:3"] < 20 || len(count) != 2 {
		t.Errorf("images %v, want half and half", count)
	}
}

func testConflict(t *testing.T, i *installation) {
	first := i.apply(newSet(t, i, "older", func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Name = "shared" }))
	i.injects(t, first)
	second := newSet(t, i, "newer", func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Name = "shared" })
	second.Spec.Namespace = first.Spec.Namespace
	i.apply(second)
	refused := i.await(t, second, v1alpha1.SidecarSetAccepted, metav1.ConditionFalse, string(accept.NameConflict))
	if want := "spec.containers[0].name: shared is the name of a container of SidecarSet older"; !strings.Contains(refused.Message, want) {
		t.Errorf("message %q, want %q", refused.Message, want)
	}
	i.await(t, second, v1alpha1.SidecarSetInjecting, metav1.ConditionFalse, "NeverAccepted")
	p := pod(first.Spec.Namespace, "game")
	i.eventually(t, "the older set is injected", p, image("shared", "older:1"))
	i.Delete(first)
	i.injects(t, second)
	i.eventually(t, "the newer set is injected", p, image("shared", "newer:1"))
}

// testSimultaneous creates sets in conflict at the same time: exactly one is accepted.
func testSimultaneous(t *testing.T, i *installation) {
	namespace := i.Env.Namespace(t)
	var sets []*v1alpha1.SidecarSet
	var wait sync.WaitGroup
	for n := range 8 {
		set := sidecarSet(fmt.Sprintf("rival-%d", n), func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Name = "same" })
		set.Spec.Namespace = namespace
		sets = append(sets, set)
		wait.Go(func() {
			expect.Success(t, i.Client.Create(t.Context(), set))
		})
	}
	wait.Wait()
	accepted := 0
	for _, set := range sets {
		t.Cleanup(func() { _ = i.Client.Delete(context.Background(), set) })
		i.eventually(t, "the set is decided", pod(namespace, "game"), func(*corev1.Pod, error) error {
			i.Get(set)
			return await.ErrorIf(set.Status.ObservedGeneration == 0, "it is not")
		})
		if set.Status.InForce != nil {
			accepted++
		}
	}
	expect.Equal(t, "sets are accepted", 1, accepted)
}

func testInvalid(t *testing.T, i *installation) {
	set := i.apply(newSet(t, i, "invalid", nil))
	i.injects(t, set)
	i.edit(set, func(s *v1alpha1.SidecarSet) {
		s.Spec.Containers[0].Image = "invalid:2"
		s.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 99999}}
	})
	refused := i.await(t, set, v1alpha1.SidecarSetAccepted, metav1.ConditionFalse, string(accept.InvalidContainer))
	if want := "spec.containers[0].ports[0].containerPort"; !strings.Contains(refused.Message, want) {
		t.Errorf("message %q, want %q", refused.Message, want)
	}
	i.eventually(t, "the valid generation stays in force", pod(set.Spec.Namespace, "game"), image("invalid", "invalid:1"))
	i.edit(set, func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Ports[0].ContainerPort = 9999 })
	i.injects(t, set)
}

// testNotChecked lets a webhook that is broken, and a policy, deny the pods of dry runs: they say nothing about the sets.
func testNotChecked(t *testing.T, i *installation) {
	const name = "seamark-test-dry-runs"
	own := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: env.SystemNamespace}}
	webhooks := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	webhooks.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
		Name: "broken.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://" + env.FreeAddress(t))},
		AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone), NamespaceSelector: own,
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "set", Expression: "object.spec.containers[0].name == 'broken'"}},
	}}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	rule := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}
	webhooks.Webhooks[0].Rules = []admissionregistrationv1.RuleWithOperations{rule}
	policy.Spec = admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: own, ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rule}},
		},
		Validations: []admissionregistrationv1.Validation{{Expression: "object.spec.containers[0].name != 'policed'", Message: "no"}},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}
	for _, object := range []client.Object{webhooks, policy, binding} {
		i.Create(object)
		t.Cleanup(func() { _ = i.Client.Delete(context.Background(), object) })
	}
	broken, policed := newSet(t, i, "broken", nil), newSet(t, i, "policed", nil)
	for _, set := range []*v1alpha1.SidecarSet{broken, policed} {
		sample := pod(env.SystemNamespace, "sample")
		sample.Spec.Containers[0].Name = set.Name
		i.eventually(t, "the dry runs are denied", sample, func(_ *corev1.Pod, err error) error {
			return await.ErrorIf(err == nil, "they are not")
		})
		i.apply(set)
	}
	for want, set := range map[string]*v1alpha1.SidecarSet{"failed calling webhook": broken, "ValidatingAdmissionPolicy": policed} {
		accepted := i.await(t, set, v1alpha1.SidecarSetAccepted, metav1.ConditionTrue, "NotChecked")
		if !strings.Contains(accepted.Message, want) {
			t.Errorf("message %q, want %q", accepted.Message, want)
		}
		i.eventually(t, "the set is injected", pod(set.Spec.Namespace, "game"), has(set.Name+" server"))
	}
}

func testWhiteList(t *testing.T, i *installation) {
	set := newSet(t, i, "annotates", func(s *v1alpha1.SidecarSetSpec) {
		s.PatchPodMetadata = []v1alpha1.SidecarSetPatchPodMetadata{{Annotations: map[string]string{"example.com/log": "on"}}}
	})
	i.apply(set)
	i.await(t, set, v1alpha1.SidecarSetAccepted, metav1.ConditionFalse, string(accept.MetadataNotAllowed))
	list := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: controller.ConfigurationName},
		Data:       map[string]string{accept.WhiteListKey: `{"rules":[{"allowedAnnotationKeyExprs":["example.com/.*"]}]}`},
	}
	i.Create(list)
	t.Cleanup(func() { _ = i.Client.Delete(context.Background(), list) })
	i.injects(t, set)
	i.eventually(t, "the annotation is set", pod(set.Spec.Namespace, "game"), func(p *corev1.Pod, err error) error {
		if p.Annotations["example.com/log"] != "on" {
			return errors.Join(err, fmt.Errorf("annotations %v", p.Annotations))
		}
		return nil
	})
	list.Data[accept.WhiteListKey] = "{"
	expect.NoError(t, i.Client.Update(t.Context(), list))
	refused := i.await(t, set, v1alpha1.SidecarSetAccepted, metav1.ConditionFalse, string(accept.MetadataNotAllowed))
	if want := "ConfigMap kruise-configuration: parse SidecarSet_PatchPodMetadata_WhiteList"; !strings.Contains(refused.Message, want) {
		t.Errorf("message %q, want %q", refused.Message, want)
	}
}
