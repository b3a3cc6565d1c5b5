// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seamark-dev/seamark/internal/probing/probetest"
	"github.com/seamark-dev/seamark/test/expect"
)

// peer is a server on the loopback interface that records its requests.
type peer struct {
	ip   string
	port int32

	mu   sync.Mutex
	said []string
}

func newPeer(t *testing.T, address string) *peer {
	t.Helper()
	parsed, err := netip.ParseAddrPort(address)
	expect.NoError(t, err)
	return &peer{ip: parsed.Addr().String(), port: int32(parsed.Port())}
}

// address returns host:port as in URLs.
func (p *peer) address() string { return net.JoinHostPort(p.ip, strconv.Itoa(int(p.port))) }

// note records a request without the address, which differs between servers.
func (p *peer) note(request string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, strings.ReplaceAll(request, p.address(), "SERVER"))
}

func (p *peer) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said
}

// answer writes the response to the n-th request, counted from 0. The connection is closed
// afterwards.
type answer func(conn net.Conn, self *peer, n int)

// say responds to every request with the same bytes. SERVER stands for the server's address.
func say(reply string) answer {
	return func(conn net.Conn, self *peer, _ int) {
		_, _ = io.WriteString(conn, strings.ReplaceAll(reply, "SERVER", self.address()))
	}
}

// inTurn gives the n-th answer to the n-th request, and the last one to all others.
func inTurn(answers ...answer) answer {
	return func(conn net.Conn, self *peer, n int) { answers[min(n, len(answers)-1)](conn, self, n) }
}

// wire returns a server that reads the head of a request and then responds.
func wire(reply answer) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		return serveOn(t, probetest.Listen(t, "127.0.0.1:0"), reply)
	}
}

func serveOn(t *testing.T, listener net.Listener, reply answer) *peer {
	t.Helper()
	self := newPeer(t, listener.Addr().String())
	var open sync.Map
	t.Cleanup(func() {
		_ = listener.Close()
		open.Range(func(conn, _ any) bool { _ = conn.(net.Conn).Close(); return true })
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Store(conn, true)
			go func() {
				defer func() { _ = conn.Close() }()
				head, err := readHead(conn)
				if err != nil {
					return
				}
				self.note(head)
				reply(conn, self, len(self.requests())-1)
			}()
		}
	}()
	return self
}

// tlsHandshake is the first byte of a TLS client.
const tlsHandshake = 0x16

// readHead reads a request up to the empty line. It returns an error for a TLS client.
func readHead(conn net.Conn) (string, error) {
	reader := bufio.NewReader(conn)
	if first, err := reader.Peek(1); err != nil || first[0] == tlsHandshake {
		return "", errors.New("no request")
	}
	var head strings.Builder
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return "", err
		}
		head.WriteString(line)
		if line == "\r\n" {
			return head.String(), nil
		}
	}
}

// linger keeps the connection open until the client closes it.
func linger(conn net.Conn, _ *peer, _ int) { _, _ = io.Copy(io.Discard, conn) }

// then gives several answers on one connection.
func then(answers ...answer) answer {
	return func(conn net.Conn, self *peer, n int) {
		for _, a := range answers {
			a(conn, self, n)
		}
	}
}

func reset(conn net.Conn, _ *peer, _ int) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// silent returns a peer that does not record requests.
func silent(address func(*testing.T) string) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		return newPeer(t, address(t))
	}
}

// refusing returns an address that nothing listens on.
func refusing() func(*testing.T) *peer { return silent(probetest.Refusing) }

// unanswering returns an address whose host drops all connection attempts.
func unanswering() func(*testing.T) *peer { return silent(probetest.Unresponsive) }

// resetting accepts connections and resets them without reading a request.
func resetting() func(*testing.T) *peer {
	return silent(func(t *testing.T) string {
		return probetest.Serve(t, func(conn net.Conn) { reset(conn, nil, 0) })
	})
}

// short accepts connections and closes them without reading a request.
func short() func(*testing.T) *peer {
	return silent(func(t *testing.T) string { return probetest.Serve(t, func(net.Conn) {}) })
}
