// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

const handed = `[{"name":"Idle","containerName":"main","probe":{"exec":{"command":["/probe"]}},"podConditionType":"game.io/idle"}]`

func reader(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	return fakeapi.Client(t, objects...).Build()
}

// broken fails every list.
type broken struct{ client.Reader }

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no informer")
}

func TestHandle(t *testing.T) {
	marker := builders.Marker("ns", "web").Probe(builders.Probe("Idle").Condition("game.io/idle").Label(v1alpha1.ProbeSucceeded, "a", "b")).Build()
	virtual := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "vk", Labels: map[string]string{"type": "virtual-kubelet"}}}
	game := func() *builders.PodBuilder { return builders.Pod("", "").Label("app", "game").Node("").Unsaved() }
	set := func(path, value string) map[string]any {
		return map[string]any{"op": "add", "path": "/metadata/annotations" + path, "value": value}
	}
	probes, markers := set("/kruise.io~1podprobe", handed), set("/kruise.io~1podprobemarker-list", "web")
	first := map[string]any{"op": "add", "path": "/metadata/annotations", "value": map[string]any{}}
	cases := map[string]struct {
		pod            *builders.PodBuilder
		raw            string
		markers, nodes client.Reader
		want           []map[string]any
	}{
		"selected":              {pod: game(), want: []map[string]any{first, probes, markers}},
		"other annotations":     {pod: game().Annotation("mine", "stays"), want: []map[string]any{probes, markers}},
		"outdated annotation":   {pod: game().Annotation("kruise.io/podprobe", "[]"), want: []map[string]any{probes, markers}},
		"correct annotations":   {pod: game().Annotation("kruise.io/podprobe", handed).Annotation("kruise.io/podprobemarker-list", "web")},
		"not selected":          {pod: builders.Pod("", "").Label("app", "db").Node("").Unsaved()},
		"no virtual nodes":      {pod: game(), nodes: reader(t)},
		"no markers":            {pod: game(), markers: reader(t)},
		"bound to another node": {pod: game().Node("kubelet")},
		"annotations too large": {pod: game().Annotation("mine", strings.Repeat("x", 256*1024-20))},
		"list markers fails":    {pod: game(), markers: broken{}},
		"list nodes fails":      {pod: game(), nodes: broken{}},
		"invalid pod":           {raw: "[]"},
		"unknown fields": {
			raw:  `{"metadata":{"labels":{"app":"game"}},"spec":{"containers":[{"name":"main","image":"x","future":1}]}}`,
			want: []map[string]any{first, probes, markers},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := &Handler{Nodes: reader(t, virtual), Reader: gather.Reader{
				Client: reader(t, marker), Compiler: plan.NewCompiler(), Options: podview.Options{Defaults: plan.KubernetesDefaults()},
			}}
			if tc.markers != nil {
				h.Reader.Client = tc.markers
			}
			if tc.nodes != nil {
				h.Nodes = tc.nodes
			}
			raw := []byte(tc.raw)
			if tc.pod != nil {
				var err error
				if raw, err = json.Marshal(tc.pod.Build()); err != nil {
					t.Fatal(err)
				}
			}
			response := h.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: "ns", Object: runtime.RawExtension{Raw: raw},
			}})
			if !response.Allowed {
				t.Fatal("pod rejected:", response.Result)
			}
			var got []map[string]any
			encoded, err := json.Marshal(response.Patches)
			if err == nil {
				err = json.Unmarshal(encoded, &got)
			}
			expect.NoError(t, err)
			expect.Equal(t, "changes", tc.want, got)
		})
	}
}

func TestTrusting(t *testing.T) {
	configuration := func(bundles ...string) *admissionregistrationv1.MutatingWebhookConfiguration {
		c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
		for i, bundle := range bundles {
			c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{
				Name: string(rune('a' + i)), ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte(bundle)},
			})
		}
		return c
	}
	cases := map[string]struct {
		configuration *admissionregistrationv1.MutatingWebhookConfiguration
		authority     string
		want          string
	}{
		"no CA":      {configuration: configuration("")},
		"up to date": {configuration: configuration("x"), authority: "x"},
		"no bundle": {
			configuration: configuration(""), authority: "x", want: `{"metadata":{"uid":"u"},"webhooks":[{"clientConfig":{"caBundle":"eA=="},"name":"a"}]}`,
		},
		"one webhook outdated": {
			configuration: configuration("x", "y"), authority: "x",
			want: `{"metadata":{"uid":"u"},"webhooks":[{"clientConfig":{"caBundle":"eA=="},"name":"b"}]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := trusting(tc.configuration, []byte(tc.authority))
			expect.NoError(t, err)
			expect.Equal(t, "patch", tc.want, string(got))
		})
	}
}

// The cache may still have a configuration that was deleted.
func TestDeletedConfigurationIsIgnored(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{authorityKey: []byte("x")},
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "c"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "w"}},
	}
	b := &bundles{
		reader: fake.NewClientBuilder().WithObjects(secret, configuration).Build(),
		writer: fake.NewClientBuilder().Build(),
		secret: types.NamespacedName{Namespace: "ns", Name: "s"}, configuration: types.NamespacedName{Name: "c"},
	}
	if _, err := b.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Errorf("error %v, want none", err)
	}
}
