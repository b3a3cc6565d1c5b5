// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// unstoredFor is how long such a plan is not written again. The CRD may get the fields meanwhile.
const unstoredFor = 10 * time.Minute

// unstored is a write that did not change the stored plan: the API server stores plans without some
// of their fields if its CRD, such as that of OpenKruise, does not have them. The plan in the cache
// then never equals the compiled one, and each compilation would write it again.
type unstored struct {
	write [sha256.Size]byte
	until time.Time
}

// writeOf identifies a plan and the object to which it is written.
func writeOf(object client.Object, pods []v1alpha1.PodProbe) [sha256.Size]byte {
	// The types of a plan always encode.
	encoded, _ := json.Marshal([]any{object.GetUID(), object.GetGeneration(), pods})
	return sha256.Sum256(encoded)
}

// createdFor is how long a created ProbePlan counts as stored although the cache does not have it. It
// may be deleted before the cache gets it.
const createdFor = 10 * time.Second

// creation is a ProbePlan that was created, until the cache has it.
type creation struct {
	slice *seamarkv1alpha1.ProbePlan
	until time.Time
}
