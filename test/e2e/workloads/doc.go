// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloads tests CloneSets and StatefulSets on a real Kubernetes cluster, where kubelets
// start, restart and resize containers.
//
// It covers these cases of OpenKruise's end-to-end tests, which need a kubelet:
//
//	CloneSet  in-place update images with the same imageID                 TestImageInPlace
//	CloneSet  in-place update both image and env from label                TestEnvironmentFromLabel
//	StatefulSet  should recreate evicted statefulset                       TestFailedPodIsReplaced
//	StatefulSet  should in-place update pods, with a grace period          TestImageInPlace
//	StatefulSet  should in-place update env from label                     TestEnvironmentFromLabel
//
// These cases do not need a kubelet. The tests in test/integration/workloads and in internal/workloads
// (inplace, cloneset, statefulset) cover them:
//
//	CloneSet  scales with minReadySeconds and scaleStrategy; specific delete a pod, exclude disabled;
//	          specific scale down with lifecycle and scale up, enabled; regard preparing-update pod as
//	          update when scaling; change resource and qos -> succeed to recreate;
//	          scales in normal cases; pods should be ready when paused; partition 99%;
//	          DisablePVCReuse
//	StatefulSet  should provide basic identity; should not deadlock when a pod's predecessor fails;
//	             scaling should happen in predictable order and halt; burst scaling should run to
//	             completion; should recreate update when pod qos changed; adopt matching orphans and
//	             release non-matching pods; rolling updates and roll backs; canary updates and phased
//	             rolling updates; specified-deleted; scale subresource; scale strategy; deletion of
//	             claims (whenDeleted, whenScaled, reserveOrdinals, adoption); claims of pending pods are
//	             recreated; old revisions of deleted pods
package workloads
