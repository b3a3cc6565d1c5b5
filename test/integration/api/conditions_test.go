// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestConditionsNeedOnlyATypeAndAStatus writes, to each kind with conditions, those that clients of OpenKruise's types write:
// one that has nothing else, and one with the zero values of Go. The object with them takes further writes.
func TestConditionsNeedOnlyATypeAndAStatus(t *testing.T) {
	t.Parallel()
	zero := map[string]any{"type": "Zero", "status": "Unknown", "reason": "", "message": "", "lastTransitionTime": nil}
	for name, manifest := range map[string]string{
		"CloneSet": smallCloneSet, "StatefulSet": smallStatefulSet, "DaemonSet": smallDaemonSet, "BroadcastJob": smallBroadcastJob,
		"AdvancedCronJob": validCronJob, "ImagePullJob": validPullJob, "SidecarSet": validSidecarSet, "PodProbeMarker": validMarker,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := parsed(t, manifest, server.Namespace(t), edit{"metadata.name", "conditions"})
			expect.NoError(t, server.Client.Create(t.Context(), object))
			status := map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}, zero}}
			if name == "ImagePullJob" {
				status["desired"] = int64(1) // OpenKruise requires it, too.
			}
			object.Object["status"] = status
			expect.NoError(t, server.Client.Status().Update(t.Context(), object))
			stored, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
			if len(stored) != 2 {
				t.Errorf("conditions %v", stored)
			}
			object.SetLabels(map[string]string{"again": "yes"})
			expect.Success(t, server.Client.Update(t.Context(), object))
		})
	}
}
