// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// webhook is a webhook of somebody else, which refuses what it is called for.
type webhook struct {
	w      *world
	config *admissionregistrationv1.ValidatingWebhookConfiguration
	server *http.Server
}

// hook starts a webhook for the objects that Seamark and the kubelet write. wait is called before each answer, with a
// context that ends when the webhook does.
func (w *world) hook(ctx context.Context, wait func(context.Context)) (*webhook, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey(hostAddress, []net.IP{net.ParseIP(hostAddress)}, nil)
	if err != nil {
		return nil, fmt.Errorf("certificate of the webhook: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("certificate of the webhook: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", hostAddress+":0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	h := &webhook{w: w, server: &http.Server{
		ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			review := &admissionv1.AdmissionReview{}
			if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
				http.Error(rw, "no review", http.StatusBadRequest)
				return
			}
			wait(r.Context())
			review.Response = &admissionv1.AdmissionResponse{
				UID: review.Request.UID, Result: &metav1.Status{Message: "the webhook of the test refuses everything", Code: http.StatusForbidden},
			}
			review.Request = nil
			_ = json.NewEncoder(rw).Encode(review)
		}),
	}}
	go func() { _ = h.server.ServeTLS(listener, "", "") }()
	h.config = configOf(w.Namespace, "https://"+listener.Addr().String(), certificate)
	return h, w.persist(ctx, func(ctx context.Context) error { return client.IgnoreAlreadyExists(w.Client.Create(ctx, h.config)) })
}

// configOf returns the configuration of a webhook for a namespace. Requests of administrators, such as the test, are
// not concerned.
func configOf(namespace, url string, authority []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	operations := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete}
	rule := func(group string, resources ...string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources},
		}
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "refuse.chaos.seamark.dev", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authority},
			Rules: []admissionregistrationv1.RuleWithOperations{
				rule("", "pods", "pods/status", "persistentvolumeclaims"), rule("apps", "controllerrevisions"),
			},
			FailurePolicy:     ptr.To(admissionregistrationv1.Fail),
			SideEffects:       ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:    ptr.To[int32](2),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			MatchConditions:   []admissionregistrationv1.MatchCondition{{Name: "others", Expression: "!('system:masters' in request.userInfo.groups)"}},

			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// remove removes the webhook.
func (h *webhook) remove(ctx context.Context) error {
	if h == nil {
		return nil
	}
	err := h.w.persist(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(h.w.Client.Delete(ctx, h.config)) })
	_ = h.server.Close()
	return err
}

// pausedSelector is a node selector that no node has.
const pausedSelector = "chaos.seamark.dev/paused"

// poll calls done until it returns true, at most for a time.
func poll(ctx context.Context, limit time.Duration, done func(context.Context) bool) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) { return done(ctx), nil })
	if err != nil {
		return fmt.Errorf("after %s: %w", limit, err)
	}
	return nil
}

// installed selects the pods, Deployments and DaemonSets of a component of the installed chart.
func installed(component string) []client.ListOption {
	return []client.ListOption{client.InNamespace(cluster.SystemNamespace), client.MatchingLabels{"app.kubernetes.io/component": component}}
}

// pause stops the installed programs until the test ends: those of the test act in their place.
func (w *world) pause() {
	w.Helper()
	for _, component := range []string{"manager", "workloads"} {
		found := &appsv1.DeploymentList{}
		w.must(w.Client.List(w.Context(), found, installed(component)...))
		for i := range found.Items {
			deployment, replicas := &found.Items[i], *found.Items[i].Spec.Replicas
			scale := func(ctx context.Context, n int32) {
				w.must(edit(ctx, w, deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = &n }))
			}
			w.Cleanup(func() { withTime(func(ctx context.Context) { scale(ctx, replicas); w.resumed(ctx, component) }) })
			scale(w.Context(), 0)
		}
	}
	agents := &appsv1.DaemonSetList{}
	w.must(w.Client.List(w.Context(), agents, installed("agent")...))
	for i := range agents.Items {
		daemon := &agents.Items[i]
		w.Cleanup(func() {
			withTime(func(ctx context.Context) {
				w.must(edit(ctx, w, daemon, func(d *appsv1.DaemonSet) { delete(d.Spec.Template.Spec.NodeSelector, pausedSelector) }))
				w.resumed(ctx, "agent")
			})
		})
		w.must(edit(w.Context(), w, daemon, func(d *appsv1.DaemonSet) {
			if d.Spec.Template.Spec.NodeSelector == nil {
				d.Spec.Template.Spec.NodeSelector = map[string]string{}
			}
			d.Spec.Template.Spec.NodeSelector[pausedSelector] = "true"
		}))
	}
	for _, component := range []string{"manager", "workloads", "agent"} {
		w.Eventually("the installed "+component+" ends", func(ctx context.Context) error {
			return w.pods(ctx, component, func(pods []corev1.Pod) error {
				if len(pods) > 0 {
					return fmt.Errorf("%d pods", len(pods))
				}
				return nil
			})
		})
	}
}

// resumed waits until the pods of a component are ready again.
func (w *world) resumed(ctx context.Context, component string) {
	w.must(poll(ctx, cluster.Timeout, func(ctx context.Context) bool {
		return w.pods(ctx, component, func(pods []corev1.Pod) error {
			if len(pods) == 0 {
				return fmt.Errorf("no pod of %s", component)
			}
			for i := range pods {
				if !isReady(&pods[i]) {
					return fmt.Errorf("pod %s is not ready", pods[i].Name)
				}
			}
			return nil
		}) == nil
	}))
}

func (w *world) pods(ctx context.Context, component string, check func([]corev1.Pod) error) error {
	pods := &corev1.PodList{}
	if err := w.Client.List(ctx, pods, installed(component)...); err != nil {
		return fmt.Errorf("list the pods of %s: %w", component, err)
	}
	return check(pods.Items)
}

// withTime calls cleanup with a context of its own: that of the test has ended.
func withTime(cleanup func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*cluster.Timeout)
	defer cancel()
	cleanup(ctx)
}

// empty deletes the markers while a manager can remove their finalizers, and the claims' volumes.
func (w *world) empty(ctx context.Context) {
	for _, kind := range []client.Object{&v1alpha1.PodProbeMarker{}} {
		if err := w.Client.DeleteAllOf(ctx, kind, client.InNamespace(w.Namespace)); err != nil {
			w.Errorf("delete %T: %v", kind, err)
		}
	}
	if err := w.Client.DeleteAllOf(ctx, &corev1.PersistentVolume{}, client.MatchingLabels{"chaos.seamark.dev/namespace": w.Namespace}); err != nil {
		w.Errorf("delete volumes: %v", err)
	}
}

// dump logs the state of the cluster, to show why a test failed.
func (w *world) dump(ctx context.Context) {
	for _, args := range [][]string{
		{"get", "pods", "-o", "wide", "--show-labels"},
		{"get", "podprobemarkers,clonesets,statefulsets.apps.kruise.io,daemonsets.apps.kruise.io,pvc", "-o", "wide"},
		{"get", "events", "--sort-by=.lastTimestamp"},
		{"get", "nodes,nodepodprobes,probereports,leases", "-A"},
	} {
		out, err := w.TryKubectl(ctx, args...)
		w.Logf("kubectl %s (%v)\n%.20000s", strings.Join(args, " "), err, out)
	}
}

// logs logs the end of the output of each program.
func (w *world) logs() {
	const most = 4000
	for name, program := range w.running {
		text, err := os.ReadFile(program.Log)
		w.Logf("end of the log of %s (%v):\n%s", name, err, text[max(0, len(text)-most):])
	}
}
