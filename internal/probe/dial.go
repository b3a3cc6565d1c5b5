// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "net"

// Dialer returns a dialer for probe connections. Their peers read the end of the stream
// as from any other client, and their local ports are free as soon as the peers have
// confirmed it: a thousand probes a second leave no ports waiting.
func Dialer() *net.Dialer { return &net.Dialer{Control: shortLinger} }
