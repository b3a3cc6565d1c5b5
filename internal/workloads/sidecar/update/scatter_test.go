// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// TestScatterIsBounded checks that authors of pods cannot make a step expensive by many values of a label.
func TestScatterIsBounded(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 1000 {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": fmt.Sprintf("z%03d", i/2)}}})
	}
	terms := scatter(v1alpha1.UpdateScatterStrategy{{Key: "zone", Value: "*"}, {Key: "zone", Value: "z999"}}, pods)
	if len(terms) != 65 || terms[0].Value != "z000" || terms[64].Value != "z999" {
		t.Errorf("%d terms, from %v to %v", len(terms), terms[0], terms[len(terms)-1])
	}
}
