// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// unstoredFor is how long such a plan is not written again. The CRD may get the fields meanwhile.
const unstoredFor = 10 * time.Minute

// unstored remembers the nodes whose plan the API server stores without some of its fields, because
// its CRD, such as that of OpenKruise, does not have them. The plan in the cache then never equals
// the compiled one, and each compilation would write it again. It is safe for concurrent use.
type unstored struct {
	mu sync.Mutex
	by map[string]unstoredWrite
}

// unstoredWrite is a write that did not change the stored object.
type unstoredWrite struct {
	plan unstoredPlan
	at   time.Time
}

// unstoredPlan identifies a plan and the stored object.
type unstoredPlan struct {
	uid        types.UID
	generation int64
	digest     [sha256.Size]byte
}

func newUnstored() *unstored {
	return &unstored{by: make(map[string]unstoredWrite)}
}

// has reports whether a write of the plan would not change the stored object.
func (u *unstored) has(npp *v1alpha1.NodePodProbe, spec v1alpha1.NodePodProbeSpec, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	last, found := u.by[npp.Name]
	return found && now.Sub(last.at) < unstoredFor && last.plan == unstoredPlanOf(npp, spec)
}

// remember records that a write of the plan did not change the stored object.
func (u *unstored) remember(npp *v1alpha1.NodePodProbe, spec v1alpha1.NodePodProbeSpec, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.by[npp.Name] = unstoredWrite{plan: unstoredPlanOf(npp, spec), at: now}
}

// forget removes a node.
func (u *unstored) forget(node string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.by, node)
}

func unstoredPlanOf(npp *v1alpha1.NodePodProbe, spec v1alpha1.NodePodProbeSpec) unstoredPlan {
	// The types of a plan always encode.
	encoded, _ := json.Marshal(spec)
	return unstoredPlan{uid: npp.UID, generation: npp.Generation, digest: sha256.Sum256(encoded)}
}
