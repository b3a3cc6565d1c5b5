// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/integration/env"
)

func workloadsRights() rights {
	sets := rights{}
	for _, kind := range []string{"clonesets", "statefulsets"} {
		sets = join(sets,
			rightsOf("apps.kruise.io", kind, "get", "list", "watch"),
			rightsOf("apps.kruise.io", kind+"/status", "patch"),
			rightsOf("apps.kruise.io", kind+"/finalizers", "update"),
		)
	}
	return join(basic(), sets,
		rightsOf("", "pods", "get", "list", "watch", "create", "patch", "delete"),
		rightsOf("", "pods/status", "patch"),
		rightsOf("", "pods/resize", "patch"),
		rightsOf("", "persistentvolumeclaims", "get", "list", "watch", "create", "patch"),
		rightsOf("apps", "controllerrevisions", "get", "list", "watch", "create", "patch", "delete"),
		rightsOf("apps.kruise.io", "podprobemarkers", "get", "list", "watch"),
		rightsOf("", "nodes", "get", "list", "watch"),
		rightsOf("", "events", "create", "patch"),
		rightsOf("coordination.k8s.io", "leases/kruise-manager", "get"),
	)
}

func workloadsActions() map[string]action {
	return map[string]action{
		"list pods":               allowed(list(&corev1.PodList{})),
		"watch pods":              allowed(watch(&corev1.PodList{})),
		"list CloneSets":          allowed(list(&v1alpha1.CloneSetList{})),
		"list markers":            allowed(list(&v1alpha1.PodProbeMarkerList{})),
		"list claims":             allowed(list(&corev1.PersistentVolumeClaimList{})),
		"list revisions":          allowed(list(&appsv1.ControllerRevisionList{})),
		"patch a pod":             allowed(patchPod),
		"write an event":          allowed(createEvent),
		"list nodes":              allowed(list(&corev1.NodeList{})),
		"list plans":              forbidden(list(&v1alpha1.NodePodProbeList{})),
		"list reports":            forbidden(list(&seamarkv1alpha1.ProbeReportList{})),
		"list secrets":            forbidden(list(&corev1.SecretList{})),
		"list config maps":        forbidden(list(&corev1.ConfigMapList{})),
		"list Deployments":        forbidden(list(&appsv1.DeploymentList{})),
		"patch a plan":            forbidden(patchPlan),
		"report for an agent":     forbidden(patchPlanStatus),
		"patch a marker":          forbidden(patchMarker),
		"write a marker's status": forbidden(patchMarkerStatus),
		"create a pod": allowed(func(ctx context.Context, c client.WithWatch, g target) error {
			pod := g.pod.DeepCopy()
			pod.ObjectMeta = metav1.ObjectMeta{Namespace: g.pod.Namespace, Name: "created"}
			return c.Create(ctx, pod)
		}),
		"delete a pod": allowed(func(ctx context.Context, c client.WithWatch, g target) error {
			pod := g.pod.DeepCopy()
			pod.ObjectMeta = metav1.ObjectMeta{Namespace: g.pod.Namespace, Name: "created-to-be-deleted"}
			if err := c.Create(ctx, pod); err != nil {
				return err
			}
			return c.Delete(ctx, pod)
		}),
		"delete all pods": forbidden(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(g.pod.Namespace))
		}),
		"evict a pod": forbidden(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.SubResource("eviction").Create(ctx, g.pod.DeepCopy(), &policyv1.Eviction{})
		}),
		"patch a node": forbidden(func(ctx context.Context, c client.WithWatch, _ target) error {
			return c.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, env.MergePatch(labelPatch))
		}),
		"create a CloneSet": forbidden(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.Create(ctx, &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: g.pod.Namespace, Name: "set"}})
		}),
	}
}
