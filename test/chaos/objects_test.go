// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/chaos/ledger"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// loadLabel is the value of the label app that the markers select.
const loadLabel = "load"

// The sets, by kind and name.
const (
	cloneSet    = "CloneSet/clones"
	statefulSet = "StatefulSet/members"
	daemonSet   = "DaemonSet/daemons"
)

// template returns the template of pods whose container answers as the test wants.
func template(set, version string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": loadLabel, "set": set, ledger.VersionLabel: version}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers: []corev1.Container{{
				Name: "main", Image: cluster.BusyboxImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", script},
				Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
			}},
		},
	}
}

// mount mounts the folder with the answers of the pod into its container.
func (u *users) mount(spec *corev1.PodSpec) {
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "truth", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: u.w.truth.folder, Type: ptr.To(corev1.HostPathDirectoryOrCreate)},
	}})
	main := &spec.Containers[0]
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "truth", MountPath: "/truth", SubPathExpr: "$(POD_NAME)"})
}

// set returns a set with its goal.
func (u *users) set(name string) client.Object {
	pods := template(filepath.Base(name), "")
	u.mount(&pods.Spec)
	meta := metav1.ObjectMeta{Namespace: u.w.Namespace, Name: filepath.Base(name)}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"set": filepath.Base(name)}}
	var set client.Object
	switch name {
	case cloneSet:
		o := &v1alpha1.CloneSet{ObjectMeta: meta, Spec: v1alpha1.CloneSetSpec{Selector: selector, Template: pods}}
		o.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(clonesAtOnce))
		set = o
	case statefulSet:
		class := u.w.Namespace
		set = &v1beta1.StatefulSet{ObjectMeta: meta, Spec: v1beta1.StatefulSetSpec{
			Selector: selector, Template: pods, ServiceName: meta.Name, PodManagementPolicy: appsv1.ParallelPodManagement,
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
				},
			}},
		}}
	default:
		pods.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		set = &v1alpha1.DaemonSet{ObjectMeta: meta, Spec: v1alpha1.DaemonSetSpec{Selector: selector, Template: pods}}
	}
	u.aimed(set, u.goals[name])
	return set
}

// aimed sets the goal of a set.
func (u *users) aimed(set client.Object, goal ledger.Goal) {
	replicas := int32(goal.Replicas) //nolint:gosec // It is small.
	switch set := set.(type) {
	case *v1alpha1.CloneSet:
		set.Spec.Replicas, set.Spec.Template.Labels[ledger.VersionLabel] = &replicas, goal.Version
	case *v1beta1.StatefulSet:
		set.Spec.Replicas, set.Spec.Template.Labels[ledger.VersionLabel] = &replicas, goal.Version
	case *v1alpha1.DaemonSet:
		set.Spec.Template.Labels[ledger.VersionLabel] = goal.Version
	}
}

// volumes returns a volume for each member of the StatefulSet.
func volumes(namespace, folder string) []client.Object {
	var all []client.Object
	for i := range mostMembers {
		all = append(all, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", namespace, i), Labels: map[string]string{"chaos.seamark.dev/namespace": namespace}},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: namespace,
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
					Path: filepath.Join(folder, fmt.Sprintf("volume-%d", i)), Type: ptr.To(corev1.HostPathDirectoryOrCreate),
				}},
			},
		})
	}
	return all
}

// probe returns a probe that runs every second. A timeout on a busy machine would be a correct result, so the timeout
// is long.
func probe(name string, handler corev1.ProbeHandler, policies ...v1alpha1.ProbeMarkerPolicy) v1alpha1.PodContainerProbe {
	return v1alpha1.PodContainerProbe{
		Name: name, ContainerName: "main", MarkerPolicy: policies,
		Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
			ProbeHandler: handler, PeriodSeconds: 1, TimeoutSeconds: 60, FailureThreshold: 1, SuccessThreshold: 1,
		}},
	}
}

func markerOf(name string, probes ...v1alpha1.PodContainerProbe) *v1alpha1.PodProbeMarker {
	return &v1alpha1.PodProbeMarker{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.PodProbeMarkerSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": loadLabel}}, Probes: probes},
	}
}

var execOK = corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-f", "/truth/ok"}}}

// markerOK sets marks of all kinds, with values that edits change, among them the cost of a deletion, which decides
// what a scale-down removes.
func (u *users) markerOK() *v1alpha1.PodProbeMarker {
	const cost = "controller.kubernetes.io/pod-deletion-cost"
	ok := probe(answerOK, execOK,
		v1alpha1.ProbeMarkerPolicy{
			State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"ok": fmt.Sprintf("yes-%d", u.edits)}, Annotations: map[string]string{cost: "10"},
		},
		v1alpha1.ProbeMarkerPolicy{State: v1alpha1.ProbeFailed, Labels: map[string]string{"ok": "no"}, Annotations: map[string]string{cost: "-10"}})
	ok.PodConditionType = "chaos.seamark.dev/ok"
	if u.edits%2 == 1 {
		ok.MarkerPolicy[1].Annotations["chaos.seamark.dev/odd"] = "true"
	}
	marker := markerOf("a-ok", ok)
	marker.Namespace = u.w.Namespace
	return marker
}

// markerWeb sets a label in one state only, and declares a key of another marker, which it never gets.
func markerWeb() *v1alpha1.PodProbeMarker {
	web := probe(answerWeb, corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/web", Port: intstr.FromInt32(8080)}},
		v1alpha1.ProbeMarkerPolicy{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"web": "up", "ok": "never"}})
	web.PodConditionType = "chaos.seamark.dev/web"
	return markerOf("b-web", web)
}

// exclusiveLabel is a label that at most one of the pods with an open port has.
const exclusiveLabel = "chaos.seamark.dev/port"

func markerPort() *v1alpha1.PodProbeMarker {
	return markerOf("c-port", probe(answerPort, corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(7070)}},
		v1alpha1.ProbeMarkerPolicy{State: v1alpha1.ProbeFailed, Labels: map[string]string{"port": "closed"}},
		v1alpha1.ProbeMarkerPolicy{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{exclusiveLabel: "open"}, Exclusive: &v1alpha1.ExclusivePolicy{}}))
}

// markerTemporary is created and deleted again and again.
func markerTemporary() *v1alpha1.PodProbeMarker {
	ok := probe(answerOK, execOK, v1alpha1.ProbeMarkerPolicy{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"temporary": "yes"}})
	ok.PodConditionType = "chaos.seamark.dev/temporary"
	return markerOf("d-temporary", ok)
}
