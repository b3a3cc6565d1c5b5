// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/seamark-dev/seamark/test/expect"
)

func TestEndedPodsAreNotCached(t *testing.T) {
	found := false
	for object, options := range Caches(Options{}).ByObject {
		if _, isPod := object.(*corev1.Pod); !isPod {
			continue
		}
		found = true
		for phase, want := range map[corev1.PodPhase]bool{
			"": true, corev1.PodPending: true, corev1.PodRunning: true, corev1.PodUnknown: true,
			corev1.PodSucceeded: false, corev1.PodFailed: false,
		} {
			expect.Equal(t, fmt.Sprintf("a pod in phase %q is cached", phase), want, options.Field.Matches(fields.Set{"status.phase": string(phase)}))
		}
	}
	if !found {
		t.Error("the cache has no options for pods")
	}
}
