// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/golden"
)

// objects decodes the YAML documents.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "---\n") {
		encoded, err := utilyaml.ToJSON([]byte(document))
		expect.NoError(t, err)
		object, _, err := unstructured.UnstructuredJSONScheme.Decode(encoded, nil, nil)
		expect.NoError(t, err)
		found = append(found, object.(*unstructured.Unstructured))
	}
	return found
}

const complete = `apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata:
  namespace: game
  name: complete
  generation: 3
  resourceVersion: "7"
  managedFields: [{manager: kubectl}]
  annotations: {seamark.dev/message-updates: Immediate}
spec:
  selector: {matchLabels: {app: server}}
  probes:
  - name: idle
    containerName: server
    probe: {exec: {command: [/idle]}, initialDelaySeconds: 5, periodSeconds: 5, failureThreshold: 2}
    podConditionType: game.io/idle
    markerPolicy: [{state: Succeeded, labels: {idle: "true"}}]
status: {observedGeneration: 3, matchedPods: 1, odd: x}
`

func pod(name, node string, managed ...metav1.ManagedFieldsEntry) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "game", Name: name, Labels: map[string]string{"app": "server"}, ManagedFields: managed},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "server"}}},
	}
}

func owns(manager, subresource, kind, key string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource,
		FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:metadata":{"f:%s":{"f:%s":{}}}}`, kind, key)),
	}
}

// different are sets that the schema accepts and that Seamark treats differently.
const different = `apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata:
  namespace: game
  name: c
  uid: c
  annotations: {apps.kruise.io/image-predownload-parallelism: "5"}
spec:
  replicas: 3
  scaleStrategy: {podsToDelete: [c-gone]}
  updateStrategy: {type: InPlaceIfPossible, priorityStrategy: {orderPriority: [{orderedKey: role}]}}
  lifecycle: {preDelete: {labelsHandler: {hold: "true"}, markPodNotReady: true}}
  selector: {matchLabels: {app: c}}
  template:
    metadata: {labels: {app: c}, annotations: {apps.kruise.io/container-launch-priority: Ordered}}
    spec:
      containers:
      - name: c
        image: i
        resources: {limits: {cpu: 1}}
        env: [{name: ROLE, valueFrom: {fieldRef: {fieldPath: "metadata.labels['role']"}}}]
---
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {namespace: game, name: s, uid: s}
spec:
  replicas: 3
  serviceName: s
  podManagementPolicy: Parallel
  ordinals: {start: 2}
  volumeClaimUpdateStrategy: {type: OnPodRollingUpdate}
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}
  updateStrategy: {rollingUpdate: {unorderedUpdate: {priorityStrategy: {orderPriority: [{orderedKey: role}]}}}}
  selector: {matchLabels: {app: s}}
  template:
    metadata: {labels: {app: s}}
    spec: {containers: [{name: c, image: i, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "1"}]}]}
status: {updateRevision: s-2}
---
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {namespace: kube-system, name: s, uid: other}
spec:
  serviceName: s
  selector: {matchLabels: {app: s}}
  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: i}]}}
`

// leaving is the label of a pod whose deletion a hook delays.
const leaving = "lifecycle.apps.kruise.io/state=PreparingDelete"

// members are pods of the sets, as "controller name label=value...".
func members(lines ...string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, line := range lines {
		words := strings.Fields(line)
		pod := pod(words[1], "n1")
		if words[0] != "-" {
			pod.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(words[0]), Controller: new(true)}}
		}
		pod.Labels = map[string]string{}
		for _, label := range words[2:] {
			key, value, _ := strings.Cut(label, "=")
			pod.Labels[key] = value
		}
		pods = append(pods, pod)
	}
	return pods
}

// byKind returns the objects by their kinds.
func byKind(lists ...[]*unstructured.Unstructured) map[string][]*unstructured.Unstructured {
	found := map[string][]*unstructured.Unstructured{}
	for _, object := range slices.Concat(lists...) {
		found[object.GetKind()] = append(found[object.GetKind()], object)
	}
	return found
}

// TestCheck compares the findings of each case with the file in testdata that has its name.
func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		// markers and objects, of any kinds, are YAML documents.
		markers, objects string
		cluster          migration.Cluster
	}{
		"nothing": {},
		"nothing changes": {
			markers: complete,
			objects: `apiVersion: apps.kruise.io/v1alpha1
kind: StatefulSet
metadata: {namespace: game, name: s}
spec:
  selector: {matchLabels: {app: s}}
  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: i}]}}
`,
			cluster: migration.Cluster{
				Pods: []*corev1.Pod{pod("a", "n1", owns("kruise-manager", "status", "labels", "idle"), owns("seamark", "status", "labels", "idle"))},
				Definitions: []migration.Definition{
					{Name: "podprobemarkers.apps.kruise.io", Kind: "PodProbeMarker", Stored: []string{"v1alpha1"}, Objects: true},
					{Name: "sidecarsets.apps.kruise.io", Kind: "SidecarSet", Stored: []string{"v1alpha1"}},
					{Name: "statefulsets.apps.kruise.io", Kind: "StatefulSet", Stored: []string{"v1alpha1", "v1beta1"}, Objects: true},
				},
			},
		},
		"changed messages":                {markers: strings.ReplaceAll(complete, "  annotations: {seamark.dev/message-updates: Immediate}\n", "")},
		"marker of an excluded namespace": {markers: strings.ReplaceAll(complete, "namespace: game", "namespace: kube-system")},
		"unset values": {
			markers: strings.ReplaceAll(complete, ", initialDelaySeconds: 5, periodSeconds: 5, failureThreshold: 2", ""),
		},
		"fields that the CRD refuses": {
			markers: `apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {namespace: game, name: m}
spec:
  selector: {matchLabels: {app: server}}
  probes:
  - name: idle
    containerName: server
    probe:
      httpGet: {host: example.com, port: 80}
      terminationGracePeriodSeconds: 3
      initialDelaySeconds: 1
      periodSeconds: 1
      failureThreshold: 1
    podConditionType: game.io/idle
`,
		},
		"timeout that is too long": {
			markers: strings.ReplaceAll(complete, "periodSeconds: 5", "periodSeconds: 5, timeoutSeconds: 301"),
		},
		"marker that Seamark does not follow": {
			markers: strings.ReplaceAll(complete, "game.io/idle", "Ready") + "---\n" +
				strings.ReplaceAll(strings.ReplaceAll(complete, "idle: \"true\"", "app: x"), "name: complete", "name: own-selector"),
		},
		"marker that is being deleted": {
			markers: strings.ReplaceAll(complete, "generation: 3", "deletionTimestamp: 2026-11-22T08:00:00Z"),
		},
		"keys that others set": {
			markers: complete + "---\n" + strings.ReplaceAll(complete, "name: complete", "name: second"),
			cluster: migration.Cluster{Pods: []*corev1.Pod{
				pod("b", "n1", owns("kubectl-label", "", "labels", "idle"), owns("kruise-manager", "status", "labels", "old")),
				pod("a", "n1", owns("kubectl-label", "", "labels", "idle"), owns("kruise-manager", "status", "annotations", "old")),
			}},
		},
		"pods on a virtual node": {
			markers: complete,
			cluster: migration.Cluster{Pods: []*corev1.Pod{pod("a", "v"), pod("b", "n1")}, Virtual: sets.New("v")},
		},
		"workloads": {
			markers: complete,
			objects: `apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {namespace: game, name: c, uid: u}
spec:
  replicas: 1
  selector: {matchLabels: {idle: "true"}}
  template: {metadata: {labels: {idle: "true"}}, spec: {containers: [{name: c, image: i}]}}
status: {replicas: 1, other: 2}
---
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {namespace: game, name: s}
spec:
  serviceName: s
  volumeClaimUpdateStrategy: {type: OnPodRollingUpdate}
  selector: {matchLabels: {app: s}}
  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: i}]}}
`,
		},
		"sets that Seamark treats differently": {
			objects: different,
			cluster: migration.Cluster{
				Manager: &migration.Manager{Namespace: "kruise", Name: "kruise-controller-manager"},
				Pods: members("c c-a role=1", "c c-b", "c c-c "+leaving, "c c-d "+leaving+" apps.kruise.io/specified-delete=true",
					"s s-2 role=1 controller-revision-hash=s-2 "+leaving, "s s-3 controller-revision-hash=s-1 "+leaving,
					"s s-5 role=2 controller-revision-hash=s-2 "+leaving,
					"- c-e app=c apps.kruise.io/cloneset-instance-id=e", "- x app=c", "- y app=other", "- s-4 app=s"),
			},
		},
		"gates of OpenKruise that are on": {
			objects: different,
			cluster: migration.Cluster{
				Manager: &migration.Manager{
					Namespace: "kruise", Name: "kruise-controller-manager",
					LeaderElection: true, LeaseNamespace: "kruise", LeaseName: "kruise-manager",
					Gates: map[string]bool{
						migration.GateStartOrdinal: true, migration.GateResize: true, migration.GateExpand: true,
						migration.GatePreDownload: true, migration.GateRollback: true, migration.GatePreparingUpdate: true, migration.GateDeleteClaims: false,
					},
				},
				Pods: members("c c-a role=1", "c c-b role=1", "c c-c role=1", "c c-d role=1 "+leaving, "s s-0 role=2"),
			},
		},
		"another lease": {
			cluster: migration.Cluster{Manager: &migration.Manager{
				Namespace: "kruise-system", Name: "kruise-controller-manager",
				LeaderElection: true, LeaseNamespace: "kruise-system", LeaseName: "mine",
			}},
		},
		"a manager without webhooks": {
			cluster: migration.Cluster{Manager: &migration.Manager{
				Namespace: "kruise-system", Name: "kruise-controller-manager",
				LeaderElection: true, LeaseNamespace: "kruise-system", LeaseName: "kruise-manager", Unknown: true,
			}},
		},
		"sets that the CRD refuses": {
			objects: `apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {namespace: game, name: a-name-that-is-longer-than-the-label-of-a-revision-can-be}
spec:
  updateStrategy: {priorityStrategy: {weightPriority: [{weight: 0, matchSelector: {matchLabels: {a: b}}}]}}
  selector: {matchLabels: {app: c}}
  template: {metadata: {labels: {app: c}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {namespace: game, name: hook}
spec:
  lifecycle: {preDelete: {markPodNotReady: true}}
  selector: {matchLabels: {app: c}}
  template: {metadata: {labels: {app: c}}, spec: {containers: [{name: c, image: i}]}}
`,
		},
		"version that Seamark does not serve": {
			objects: "apiVersion: apps.kruise.io/v1beta1\nkind: CloneSet\nmetadata: {namespace: game, name: c}\n",
		},
		"SidecarSets": {
			objects: `apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: logs, annotations: {apps.kruise.io/sidecarset-canary: "true"}}
spec:
  selector: {matchLabels: {app: c}}
  containers: [{name: c, image: i, upgradeStrategy: {upgradeType: HotUpgrade}}]
---
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: order}
spec:
  selector: {matchLabels: {app: c}}
  containers: [{name: c, image: i, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "1"}]}]
`,
		},
		"AdvancedCronJobs": {
			objects: cronJob("zone", "timeZone: Europe/Berlin, schedule: '30 2 * * *'") + "---\n" +
				cronJob("prefix", "schedule: 'CRON_TZ=Europe/Berlin 30 2 * * *'") + "---\n" +
				cronJob("every", "schedule: '@every 90m'") + "---\n" +
				strings.ReplaceAll(cronJob("excluded", "schedule: '@every 90m'"), "namespace: game", "namespace: kube-system") + "---\n" +
				cronJob("no-zone", "schedule: '30 2 * * *'") + "---\n" +
				cronJob("reversed-range", "schedule: '5-3 * * * *'") + "---\n" +
				cronJob("seconds", "schedule: '0 30 2 * * *'") + "---\n" +
				cronJob("unknown-zone", "timeZone: Europe/Atlantis, schedule: '30 2 * * *'") + "---\n" +
				cronJob("unknown-prefix", "schedule: 'TZ=Europe/Atlantis 30 2 * * *'") + "---\n" +
				cronJob("a-name-that-is-longer-than-what-the-name-of-a-job-leaves", "timeZone: Asia/Tokyo, schedule: '@daily'") + "---\n" +
				strings.ReplaceAll(cronJob("broadcast", "timeZone: Asia/Tokyo, schedule: '@daily'"), "jobTemplate", "broadcastJobTemplate") + "---\n" +
				strings.ReplaceAll(cronJob("images", "timeZone: Asia/Tokyo, schedule: '@daily'"), "jobTemplate", "imageListPullJobTemplate"),
		},
		"ImagePullJobs": {
			objects: imagePull("game", "plain", "image: 'game:1'", "") + "---\n" +
				imagePull("game", "sandbox", "image: 'game:1', sandboxConfig: {labels: {a: b}}", "") + "---\n" +
				imagePull("game", "ended", "image: 'game:1', sandboxConfig: {labels: {a: b}}", "completionTime: '2026-01-01T00:00:00Z'") + "---\n" +
				imagePull("kube-system", "excluded", "image: 'game:1'", ""),
		},
		"other kinds and stored versions": {
			cluster: migration.Cluster{Definitions: []migration.Definition{
				{Name: "imagelistpulljobs.apps.kruise.io", Kind: "ImageListPullJob", Stored: []string{"v1alpha1"}, Objects: true},
				{Name: "nodeimages.apps.kruise.io", Kind: "NodeImage", Stored: []string{"v1alpha1"}, Objects: true},
				{Name: "daemonsets.apps.kruise.io", Kind: "DaemonSet", Stored: []string{"v1alpha1"}, Objects: true},
				{Name: "uniteddeployments.apps.kruise.io", Kind: "UnitedDeployment", Stored: []string{"v1alpha1"}, Objects: true},
				{Name: "statefulsets.apps.kruise.io", Kind: "StatefulSet", Stored: []string{"v1", "v1beta1"}, Objects: true},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{test.markers, test.objects} {
				if text != "" {
					test.cluster.Add(objects(t, text)...)
				}
			}
			test.cluster.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			found, err := migration.Check(t.Context(), test.cluster)
			expect.NoError(t, err)
			golden.Compare(t, filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txt"), text(found))
		})
	}
}

// imagePull returns an ImagePullJob with the fields in its spec and status, as OpenKruise stores it.
func imagePull(namespace, name, fields, status string) string {
	return fmt.Sprintf(`apiVersion: apps.kruise.io/v1alpha1
kind: ImagePullJob
metadata: {namespace: %s, name: %s, finalizers: [apps.kruise.io/deletion-protection]}
spec: {%s, completionPolicy: {type: Always}, imagePullPolicy: IfNotPresent, pullPolicy: {timeoutSeconds: 600, backoffLimit: 3}}
status: {desired: 1, %s}
`, namespace, name, fields, status)
}

// cronJob returns an AdvancedCronJob with the fields in its spec.
func cronJob(name, fields string) string {
	return fmt.Sprintf(`apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata: {namespace: game, name: %s}
spec: {%s, template: {jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}
`, name, fields)
}

func text(found []migration.Finding) string {
	var text strings.Builder
	for _, f := range found {
		fmt.Fprintf(&text, "%s %s\n  field: %q\n  OpenKruise: %s\n  Seamark: %s\n  %s\n", f.Level, f.Object(), f.Field, f.OpenKruise, f.Seamark, f.Action)
		if f.Pods != "" {
			fmt.Fprintf(&text, "  pods: %s\n", f.Pods)
		}
	}
	return text.String()
}
