// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "sync"

// changes records the daemons and nodes that a run of Up has changed. Nodes are changed concurrently.
type changes struct {
	mutex sync.Mutex
	names map[string]bool
}

func newChanges() *changes { return &changes{names: map[string]bool{}} }

func (c *changes) add(name string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.names[name] = true
}

func (c *changes) has(name string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.names[name]
}

func (c *changes) any() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.names) > 0
}
