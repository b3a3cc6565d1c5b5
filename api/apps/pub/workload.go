// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package pub

// WorkloadKey is the label of pods that seamark-workloads creates or adopts. Its value is the kind of their controller, such
// as "DaemonSet". The admission policy of seamark-workloads does not look at deletions and status writes of pods that have
// it, of which kubelets make many. OpenKruise does not set it.
const WorkloadKey = "seamark.dev/workload"
