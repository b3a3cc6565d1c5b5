// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// validCloneSet has every part of a CloneSet.
const validCloneSet = `
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata:
  name: game
spec:
  replicas: 3
  selector:
    matchLabels: {app: game}
    matchExpressions:
    - {key: tier, operator: In, values: [front, back]}
  template:
    metadata:
      labels: {app: game, tier: front}
    spec:
      containers:
      - name: server
        image: game:1
        ports: [{containerPort: 80}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  scaleStrategy: {podsToDelete: [game-abcde], maxUnavailable: 50%, disablePVCReuse: true, excludePreparingDelete: true}
  updateStrategy:
    type: InPlaceIfPossible
    partition: 10%
    maxUnavailable: 1
    maxSurge: 1
    paused: true
    priorityStrategy:
      weightPriority:
      - {weight: 50, matchSelector: {matchLabels: {role: secondary}}}
    scatterStrategy: [{key: zone, value: a}]
    inPlaceUpdateStrategy:
      gracePeriodSeconds: 10
      imagePreDownloadParallelism: 10%
      imagePreDownloadTimeoutSeconds: 60
      imagePreDownloadMinUpdatedReadyPods: 1
  revisionHistoryLimit: 5
  minReadySeconds: 5
  progressDeadlineSeconds: 600
  lifecycle:
    preDelete: {labelsHandler: {game.io/match: "true"}, finalizersHandler: [game.io/match], markPodNotReady: true}
    inPlaceUpdate: {finalizersHandler: [game.io/match]}
    preNormal: {labelsHandler: {game.io/registered: "true"}}
`

// validStatefulSet has every part of a StatefulSet.
const validStatefulSet = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata:
  name: db
spec:
  replicas: 3
  selector:
    matchLabels: {app: db}
    matchExpressions:
    - {key: tier, operator: NotIn, values: [front]}
  serviceName: db
  podManagementPolicy: Parallel
  template:
    metadata:
      labels: {app: db}
    spec:
      readinessGates: [{conditionType: InPlaceUpdateReady}]
      initContainers: [{name: init, image: db:1}]
      containers: [{name: server, image: db:1}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  volumeClaimUpdateStrategy: {type: OnDelete}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      partition: 1
      maxUnavailable: 50%
      podUpdatePolicy: InPlaceIfPossible
      paused: true
      unorderedUpdate:
        priorityStrategy:
          orderPriority: [{orderedKey: game.io/role}]
      inPlaceUpdateStrategy:
        gracePeriodSeconds: 10
        imagePreDownloadParallelism: 2
        imagePreDownloadTimeoutSeconds: 60
        imagePreDownloadMinUpdatedReadyPods: 10%
      minReadySeconds: 300
  revisionHistoryLimit: 5
  progressDeadlineSeconds: 600
  reserveOrdinals: [1, 3-5]
  lifecycle:
    preDelete: {labelsHandler: {game.io/match: "true"}}
  scaleStrategy: {maxUnavailable: 2}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}
  ordinals: {start: 1}
`

// parsed returns the object of the manifest in the namespace with the edits.
func parsed(t *testing.T, manifest, namespace string, edits ...edit) *unstructured.Unstructured {
	t.Helper()
	objects, err := env.ParseManifests([]byte(manifest))
	expect.NoError(t, err)
	object := objects[0]
	object.SetNamespace(namespace)
	for _, e := range edits {
		expect.NoError(t, e.apply(object.Object))
	}
	return object
}

func TestInvalidWorkloadsAreRejected(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	for kind, manifest := range map[string]string{"CloneSet": validCloneSet, "StatefulSet": validStatefulSet} {
		expect.NoErrorf(t, create(t.Context(), parsed(t, manifest, namespace)), "the unchanged %s is rejected", kind)
		cases := sharedRejections()
		switch kind {
		case "CloneSet":
			addAll(cases, cloneSetRejections(), priorityRejections("spec.updateStrategy.priorityStrategy"))
		case "StatefulSet":
			addAll(cases, statefulSetRejections(), priorityRejections("spec.updateStrategy.rollingUpdate.unorderedUpdate.priorityStrategy"))
		}
		for name, test := range cases {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				expectRejection(t, create(t.Context(), parsed(t, manifest, namespace, test.edits...)), test)
			})
		}
	}
}

// rejectsEach checks that both versions of the valid object are accepted, and those with the edits of a test are rejected.
func rejectsEach(t *testing.T, valid, namespace string, tests map[string]rejection) {
	t.Helper()
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		manifest := strings.Replace(valid, "v1alpha1", version, 1)
		expect.NoErrorf(t, create(t.Context(), parsed(t, manifest, namespace, edit{"metadata.name", "valid-" + version})), "the unchanged object is rejected")
		for name, test := range tests {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				expectRejection(t, create(t.Context(), parsed(t, manifest, namespace, test.edits...)), test)
			})
		}
	}
}

func addAll(to map[string]rejection, from ...map[string]rejection) {
	for _, some := range from {
		for name, test := range some {
			to[name] = test
		}
	}
}

// expectRejection checks that the response has one cause, which names the field and describes what
// is allowed.
func expectRejection(t *testing.T, err error, want rejection) {
	t.Helper()
	got, err := causes(err)
	expect.NoError(t, err)
	got = slices.DeleteFunc(got, func(cause metav1.StatusCause) bool {
		// The scale subresource has the path .spec.replicas. The template does not match a selector
		// that is invalid.
		return cause.Field != want.field && (cause.Field == ".spec.replicas" ||
			cause.Field == "spec.template.metadata.labels" && strings.HasPrefix(want.field, "spec.selector"))
	})
	got = slices.CompactFunc(got, func(a, b metav1.StatusCause) bool { return a.Field == b.Field })
	if len(got) != 1 {
		t.Fatalf("the response has %d causes, want one: %v", len(got), got)
	}
	if got[0].Field != want.field {
		t.Errorf("the response has field %q, want %q: %s", got[0].Field, want.field, got[0].Message)
	}
	for _, words := range want.message {
		if !strings.Contains(got[0].Message, words) {
			t.Errorf("the message %q does not contain %q", got[0].Message, words)
		}
	}
}
