// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
)

// fullPod returns a pod as a Deployment creates it, after the defaults of the API server.
func fullPod() *corev1.Pod {
	quantities := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("256Mi")}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz"}}, PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
	server := corev1.Container{
		Name: "server", Image: "registry.example.com/games/server:1.27", Args: []string{"--port=8080", "--log=info"}, ImagePullPolicy: corev1.PullIfNotPresent,
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}, LivenessProbe: probe, ReadinessProbe: probe,
		Resources:              corev1.ResourceRequirements{Limits: quantities, Requests: quantities},
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
	}
	for _, name := range []string{"REGION", "ZONE", "ROUND", "LEVEL", "MODE", "SEED"} {
		server.Env = append(server.Env, corev1.EnvVar{Name: name, Value: "value of " + name})
	}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "server-6d5c4b7f9-", Namespace: "games", Labels: map[string]string{"app": "game", "pod-template-hash": "6d5c4b7f9"},
			Annotations:     map[string]string{"prometheus.io/scrape": "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "server-6d5c4b7f9", UID: "uid", Controller: new(true), BlockOwnerDeletion: new(true)}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{server}, RestartPolicy: corev1.RestartPolicyAlways, ServiceAccountName: "default", DNSPolicy: corev1.DNSClusterFirst,
			Volumes:                       []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, {Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}}},
			TerminationGracePeriodSeconds: new(int64(30)), SecurityContext: &corev1.PodSecurityContext{}, SchedulerName: "default-scheduler", EnableServiceLinks: new(true),
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))}},
		},
	}
}

// BenchmarkRequest answers requests for pods that a set with a container, an init container and a volume selects.
func BenchmarkRequest(b *testing.B) {
	t := &testing.T{}
	set, _ := acceptedSet(t, "game")
	set.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "spool", MountPath: "/spool"}}
	set.Spec.Containers[0].ShareVolumePolicy.Type = v1alpha1.ShareVolumePolicyEnabled
	set.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "info"}, {Name: "TARGET", Value: "collector:4317"}}
	set.Spec.InitContainers = []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "setup", Image: "setup:1"}}}
	set.Spec.Volumes = []corev1.Volume{{Name: "spool", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	revision, err := history.New(set, own, 1, 0)
	if err != nil {
		b.Fatal(err)
	}
	set.Status.InForce.Revision = revision.Name
	raw, err := json.Marshal(fullPod())
	if err != nil {
		b.Fatal(err)
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &admissionv1.AdmissionRequest{UID: "uid", Namespace: "games", Object: runtime.RawExtension{Raw: raw}},
	})
	if err != nil {
		b.Fatal(err)
	}
	handler := New(newSets(t, set, set, interceptor.Funcs{}, revision), func(r Result) {
		if r != Injected {
			b.Fatal(r)
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		request := httptest.NewRequest(http.MethodPost, "/inject/logs", bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}
}
