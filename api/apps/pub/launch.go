// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package pub

const (
	// ContainerLaunchPriorityEnv is the environment variable with the launch priority of its container,
	// a decimal integer. An update in place changes containers with a higher priority first. A
	// container without the variable has the priority 0.
	ContainerLaunchPriorityEnv = "KRUISE_CONTAINER_PRIORITY"

	// ContainerLaunchPriorityKey is the pod annotation that, with the value ContainerLaunchOrdered,
	// gives each container a higher launch priority than the containers after it.
	ContainerLaunchPriorityKey = "apps.kruise.io/container-launch-priority"
	// ContainerLaunchOrdered is the value of ContainerLaunchPriorityKey.
	ContainerLaunchOrdered = "Ordered"

	// ContainerLaunchBarrierEnv is the environment variable that OpenKruise's webhook adds to the
	// containers of new pods with launch priorities. It refers to a key of a ConfigMap: the prefix
	// ContainerLaunchBarrierPrefix and the priority. Seamark does not set it.
	ContainerLaunchBarrierEnv = "KRUISE_CONTAINER_BARRIER"
	// ContainerLaunchBarrierPrefix is the prefix of the keys that ContainerLaunchBarrierEnv refers to.
	ContainerLaunchBarrierPrefix = "p_"
)
