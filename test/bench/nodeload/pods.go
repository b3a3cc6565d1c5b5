// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeload

import "fmt"

const (
	// Namespace is the namespace of all pods.
	Namespace = "games"
	// ListMethod is the method of the runtime that lists all containers.
	ListMethod = "ListContainers"
	// Container is the name of the container of each pod.
	Container = "server"

	// Path is the path of HTTP probes.
	Path = "/index.html"
	// Command is the command of exec probes. Images with busybox have it.
	Command = "/bin/true"

	containerIDFormat = "%064d"
	// floorContainer is the container of the calls of floors, which are not counted.
	floorContainer = "floor"
)

// PodName returns the name of the nth pod.
func PodName(n int) string { return fmt.Sprintf("game-server-%04d", n) }

// PodUID returns the UID of the nth pod.
func PodUID(n int) string { return fmt.Sprintf("9a3c5f3e-7a1d-4c1b-8c6e-%012d", n) }

// PodIP returns the address of the nth pod, in the loopback network.
func PodIP(n int) string { return fmt.Sprintf("127.1.%d.%d", n/200, n%200+1) }

// ContainerID returns the runtime's ID of the nth pod's container.
func ContainerID(n int) string { return fmt.Sprintf(containerIDFormat, n) }
