// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "sync"

// changes records the names of the daemons and nodes that a run of Up has changed. Nodes are changed concurrently.
type changes struct{ names sync.Map }

func (c *changes) add(name string) { c.names.Store(name, true) }

func (c *changes) has(name string) bool {
	_, found := c.names.Load(name)
	return found
}

func (c *changes) any() bool {
	found := false
	c.names.Range(func(any, any) bool {
		found = true
		return false
	})
	return found
}
