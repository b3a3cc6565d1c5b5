// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
)

// The specs and statuses as OpenKruise writes them, with every field that Seamark serves.
const (
	cloneSet = `{
"spec":{"replicas":3,"selector":{"matchLabels":{"app":"a"}},"template":{"spec":{"containers":null}},
"scaleStrategy":{"podsToDelete":["a-b"],"maxUnavailable":"50%","disablePVCReuse":true,"excludePreparingDelete":true},
"updateStrategy":{"type":"InPlaceOnly","partition":"10%","maxUnavailable":1,"maxSurge":0,"paused":true,
"priorityStrategy":{"orderPriority":[{"orderedKey":"k"}],"weightPriority":[{"weight":1,"matchSelector":{"matchLabels":{"a":"b"}}}]},
"scatterStrategy":[{"key":"k","value":"v"}],"inPlaceUpdateStrategy":{"gracePeriodSeconds":1,
"imagePreDownloadParallelism":"10%","imagePreDownloadTimeoutSeconds":60,"imagePreDownloadMinUpdatedReadyPods":1}},
"revisionHistoryLimit":10,"minReadySeconds":1,
"lifecycle":{"preDelete":{"labelsHandler":{"a":"b"},"finalizersHandler":["a/b"],"markPodNotReady":true},"inPlaceUpdate":{"labelsHandler":{"a":"b"}}}},
"status":{"observedGeneration":1,"replicas":1,"readyReplicas":1,"availableReplicas":1,"updatedReplicas":1,"updatedReadyReplicas":1,
"updatedAvailableReplicas":1,"expectedUpdatedReplicas":1,"updateRevision":"a","currentRevision":"b","collisionCount":1,
"conditions":[{"type":"FailedScale","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"r","message":"m"}],
"labelSelector":"app=a"}}`

	statefulSet = `{
"spec":{"replicas":3,"selector":{"matchLabels":{"app":"a"}},"template":{"spec":{"containers":null}},
"volumeClaimUpdateStrategy":{"type":"OnDelete"},"serviceName":"s","podManagementPolicy":"Parallel",
"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1,"maxUnavailable":"10%","podUpdatePolicy":"InPlaceIfPossible",
"paused":true,"unorderedUpdate":{"priorityStrategy":{"orderPriority":[{"orderedKey":"k"}]}},
"inPlaceUpdateStrategy":{"gracePeriodSeconds":1,
"imagePreDownloadParallelism":"10%","imagePreDownloadTimeoutSeconds":60,"imagePreDownloadMinUpdatedReadyPods":1},"minReadySeconds":1}},
"revisionHistoryLimit":10,"reserveOrdinals":[1,"3-5"],"lifecycle":{"preDelete":{"labelsHandler":{"a":"b"}}},
"scaleStrategy":{"maxUnavailable":1},"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Retain"},
"ordinals":{"start":1}},
"status":{"observedGeneration":1,"replicas":1,"readyReplicas":1,"availableReplicas":1,"currentReplicas":1,"updatedReplicas":1,
"updatedReadyReplicas":1,"updatedAvailableReplicas":1,"currentRevision":"a","updateRevision":"b","collisionCount":1,
"conditions":[{"type":"FailedCreatePod","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"r","message":"m"}],
"labelSelector":"app=a"}}`
)

// TestWireFormat checks that the types read every field and write it back as it was.
func TestWireFormat(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		into any
	}{
		"CloneSet":    {cloneSet, &v1alpha1.CloneSet{}},
		"StatefulSet": {statefulSet, &v1beta1.StatefulSet{}},
	} {
		t.Run(name, func(t *testing.T) {
			decoder := json.NewDecoder(bytes.NewReader([]byte(tc.text)))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(tc.into); err != nil {
				t.Fatal(err)
			}
			written, err := json.Marshal(tc.into)
			if err != nil {
				t.Fatal(err)
			}
			var want, got map[string]any
			for text, into := range map[string]*map[string]any{tc.text: &want, string(written): &got} {
				if err := json.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			delete(got, "metadata")
			for _, part := range []map[string]any{want, got} {
				spec, ok := part["spec"].(map[string]any)
				if !ok {
					t.Fatal("no spec")
				}
				delete(spec, "template")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}
