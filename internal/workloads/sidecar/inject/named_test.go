// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject_test

import (
	"fmt"
	"math"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

func TestGetsNamed(t *testing.T) {
	canary := &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "true"}}
	strategy := func(policy v1alpha1.SidecarSetInjectRevisionPolicy) *v1alpha1.SidecarSetInjectRevision {
		return &v1alpha1.SidecarSetInjectRevision{RevisionName: new("logs-1"), Policy: policy}
	}
	const always, partial = v1alpha1.AlwaysSidecarSetInjectRevisionPolicy, v1alpha1.PartialSidecarSetInjectRevisionPolicy
	for name, test := range map[string]struct {
		revision *v1alpha1.SidecarSetInjectRevision
		update   v1alpha1.SidecarSetUpdateStrategy
		labels   map[string]string
		// share is the share of the pods that get the named revision.
		share float64
	}{
		"no strategy":           {update: v1alpha1.SidecarSetUpdateStrategy{Partition: new(intstr.FromString("100%"))}},
		"always":                {revision: strategy(always), update: v1alpha1.SidecarSetUpdateStrategy{Selector: canary}, labels: canary.MatchLabels, share: 1},
		"always by default":     {revision: strategy(""), share: 1},
		"partial, paused":       {revision: strategy(partial), update: v1alpha1.SidecarSetUpdateStrategy{Paused: true}, share: 1},
		"partial, not selected": {revision: strategy(partial), update: v1alpha1.SidecarSetUpdateStrategy{Selector: canary}, share: 1},
		"partial, selected":     {revision: strategy(partial), update: v1alpha1.SidecarSetUpdateStrategy{Selector: canary}, labels: canary.MatchLabels},
		"partial, 90%":          {revision: strategy(partial), update: v1alpha1.SidecarSetUpdateStrategy{Partition: new(intstr.FromString("90%"))}, share: 0.9},
		"partial, 100%":         {revision: strategy(partial), update: v1alpha1.SidecarSetUpdateStrategy{Partition: new(intstr.FromString("100%"))}, share: 1},
		"partial, 30 of 100":    {revision: strategy(partial), update: v1alpha1.SidecarSetUpdateStrategy{Partition: new(intstr.FromInt32(30))}, share: 0.3},
		"partial, 200 of 100":   {revision: strategy(partial), update: v1alpha1.SidecarSetUpdateStrategy{Partition: new(intstr.FromInt32(200))}, share: 1},
		"partial, 0":            {revision: strategy(partial), update: v1alpha1.SidecarSetUpdateStrategy{Partition: new(intstr.FromInt32(0))}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.SidecarSetSpec{UpdateStrategy: test.update, InjectionStrategy: v1alpha1.SidecarSetInjectionStrategy{Revision: test.revision}}
			const requests = 5000
			named := 0
			for i := range requests {
				uid := types.UID(fmt.Sprintf("3f2c1a5e-7b7d-4a53-9f1b-%012x", i))
				got, err := inject.GetsNamed(spec, test.labels, uid, 100)
				if again, _ := inject.GetsNamed(spec, test.labels, uid, 100); err != nil || again != got {
					t.Fatalf("request %s: %t, then %t, error %v", uid, got, again, err)
				}
				if got {
					named++
				}
			}
			if share := float64(named) / requests; math.Abs(share-test.share) > 0.03 || (test.share == 0 || test.share == 1) && share != test.share {
				t.Errorf("%.3f of the pods get the named revision, want %.3f", share, test.share)
			}
		})
	}
}
