// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
)

// runsPerProcessor is how many runs of probes per second one processor is used for. A run needs
// 0.3 to 0.6 ms of processor time, or about 3 ms with a TLS handshake.
const runsPerProcessor = 250

// adaptProcessors sets GOMAXPROCS to 1 and returns a function that adapts it to the load of a plan,
// up to its default. No more than rate probes run per second, whatever is planned. Go's threads look
// for work before they sleep, and each processor has its own caches: with 32 processors and 150 runs
// per second, a run needs 40% more processor time than with one, and the agent 5 MiB more memory. It
// returns nil if the environment sets GOMAXPROCS.
func adaptProcessors(rate int) func(runsPerSecond float64) {
	if os.Getenv("GOMAXPROCS") != "" {
		return nil
	}
	most := runtime.GOMAXPROCS(1)
	return func(runsPerSecond float64) {
		if n := processors(min(runsPerSecond, float64(rate)), most); n != runtime.GOMAXPROCS(0) {
			runtime.GOMAXPROCS(n)
		}
	}
}

// processors returns how many processors the load needs, at least one and at most most.
func processors(runsPerSecond float64, most int) int {
	return min(1+int(runsPerSecond/runsPerProcessor), most)
}
