// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// unstoredFor is how long such a plan is not written again. The CRD may get the fields meanwhile.
const unstoredFor = 10 * time.Minute

// unstored is a write that did not change the stored plan: the API server stores plans without some
// of their fields if its CRD, such as that of OpenKruise, does not have them. The plan in the cache
// then never equals the compiled one, and each compilation would write it again.
type unstored struct {
	write write
	at    time.Time
}

// write identifies a plan and the object to which it is written.
type write struct {
	uid        types.UID
	generation int64
	digest     [sha256.Size]byte
}

// rest returns how long the same write is not repeated.
func (u unstored) rest(next write, now time.Time) time.Duration {
	if u.write != next {
		return 0
	}
	return max(0, u.at.Add(unstoredFor).Sub(now))
}

func writeOf(npp *v1alpha1.NodePodProbe, spec v1alpha1.NodePodProbeSpec) write {
	// The types of a plan always encode.
	encoded, _ := json.Marshal(spec)
	return write{uid: npp.UID, generation: npp.Generation, digest: sha256.Sum256(encoded)}
}
