// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"math"
	"net"
	"sync/atomic"
)

// Limited is a connection of which a limited number of bytes is read, because protocols keep
// parts of what they read in memory, at a multiple of its size.
type Limited struct {
	net.Conn

	part  string
	limit int
	left  atomic.Int64
}

// Limit returns a connection that fails when more bytes than the limit are read. The error names
// the part that is too long, such as "TLS handshake".
func Limit(conn net.Conn, part string, limit int) *Limited {
	l := &Limited{Conn: conn, part: part, limit: limit}
	l.left.Store(int64(limit))
	return l
}

// Lift removes the limit.
func (l *Limited) Lift() { l.left.Store(math.MaxInt64) }

// Read reads from the connection within the limit.
func (l *Limited) Read(p []byte) (int, error) {
	left := l.left.Load()
	if left <= 0 {
		return 0, fmt.Errorf("%s exceeded %d bytes", l.part, l.limit)
	}
	n, err := l.Conn.Read(p[:min(int64(len(p)), left)])
	l.left.Add(-int64(n))
	return n, err
}
