// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package pub

// WorkloadKey is the label of pods that seamark-workloads creates or adopts. Its value is the kind of their controller, such
// as "DaemonSet". The admission policy of seamark-workloads does not look at deletions and status writes of pods that have
// it, of which kubelets make many. OpenKruise does not set it.
const WorkloadKey = "seamark.dev/workload"

// RevisionClaimTemplatesKey is the annotation of a ControllerRevision that contains the volumeClaimTemplates that the set had
// when the revision became its update revision, as a JSON list. Pods of the revision keep claims whose templates are removed
// from the set. It is missing if there were none, in revisions of OpenKruise, and if the list is larger than 64 KiB.
const RevisionClaimTemplatesKey = "seamark.dev/claim-templates"
