// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/probing/probetest"
)

// ok is a plain reply with the body "ok".
const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestHTTPStatuses returns every possible status, with and without a body.
func TestHTTPStatuses(t *testing.T) {
	for status := range 1000 {
		want := failure
		if status >= 200 && status < 400 {
			want = success
		}
		// After an interim response, the connection is closed, which is a failure too.
		for name, reply := range map[string]string{
			"body":  fmt.Sprintf("HTTP/1.1 %03d Odd\r\nContent-Length: 5\r\n\r\nhello", status),
			"empty": fmt.Sprintf("HTTP/1.1 %03d Odd\r\nContent-Length: 0\r\n\r\n", status),
		} {
			t.Run(fmt.Sprintf("%03d/%s", status, name), func(t *testing.T) {
				compare(t, httpGet(), wire(say(reply)), ample, want, verbatim)
			})
		}
	}
}

// TestHTTPReplies returns valid and invalid responses.
func TestHTTPReplies(t *testing.T) {
	big := strings.Repeat("x", 10<<10)
	cases := map[string]struct {
		reply string
		want  conclusion
	}{
		"plain":                                {ok, success},
		"HTTP/1.0":                             {"HTTP/1.0 200 OK\r\n\r\nhello", success},
		"HTTP/1.0, failed":                     {"HTTP/1.0 503 Down\r\n\r\nhello", failure},
		"HTTP/1.0, kept alive":                 {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", success},
		"HTTP/0.9":                             {"hello\r\n", failure},
		"HTTP/1.2":                             {"HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok", success},
		"HTTP/2.0 in letters":                  {"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok", success},
		"HTTP/3.0 in letters":                  {"HTTP/3.0 200 OK\r\nContent-Length: 2\r\n\r\nok", success},
		"HTTP/9":                               {"HTTP/9 200 OK\r\n\r\n", failure},
		"lower-case protocol":                  {"http/1.1 200 OK\r\n\r\n", failure},
		"other protocol":                       {"SSH-2.0-OpenSSH_9.2\r\n", failure},
		"no reason":                            {"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", success},
		"no reason, with a space":              {"HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", success},
		"two spaces before the status":         {"HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok", success},
		"tab before the status":                {"HTTP/1.1\t200 OK\r\n\r\n", failure},
		"no status":                            {"HTTP/1.1\r\n\r\n", failure},
		"status of two digits":                 {"HTTP/1.1 20 OK\r\n\r\n", failure},
		"status of four digits":                {"HTTP/1.1 2000 OK\r\n\r\n", failure},
		"status in letters":                    {"HTTP/1.1 abc OK\r\n\r\n", failure},
		"negative status":                      {"HTTP/1.1 -20 OK\r\n\r\n", failure},
		"signed status":                        {"HTTP/1.1 +20 OK\r\n\r\n", failure},
		"long reason":                          {"HTTP/1.1 200 " + big[:7<<10] + "\r\nContent-Length: 2\r\n\r\nok", success},
		"bare line feeds":                      {"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", success},
		"line before":                          {"\r\nHTTP/1.1 200 OK\r\n\r\n", failure},
		"nothing":                              {"", failure},
		"half a status line":                   {"HTTP/1.1 20", failure},
		"only a status line":                   {"HTTP/1.1 200 OK\r\n", failure},
		"half a header":                        {"HTTP/1.1 200 OK\r\nContent-Le", failure},
		"no empty line":                        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", failure},
		"header without a colon":               {"HTTP/1.1 200 OK\r\nnonsense\r\n\r\nok", failure},
		"header with a space":                  {"HTTP/1.1 200 OK\r\nbad name: x\r\nContent-Length: 2\r\n\r\nok", success},
		"header with no name":                  {"HTTP/1.1 200 OK\r\n: x\r\n\r\nok", failure},
		"header with a NUL":                    {"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 2\r\n\r\nok", failure},
		"folded header":                        {"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok", success},
		"first header folded":                  {"HTTP/1.1 200 OK\r\n X: a\r\n\r\nok", failure},
		"header of 7 KiB":                      {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 7<<10) + "\r\nContent-Length: 2\r\n\r\nok", success},
		"300 headers":                          {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: a\r\n", 300) + "Content-Length: 2\r\n\r\nok", success},
		"no length":                            {"HTTP/1.1 200 OK\r\n\r\nhello", success},
		"negative length":                      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello", failure},
		"length in letters":                    {"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nhello", failure},
		"length beyond 64 bits":                {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello", failure},
		"same length twice":                    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", success},
		"two lengths":                          {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nhello", failure},
		"empty length":                         {"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\nhello", failure},
		"body longer than declared":            {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello", success},
		"body shorter than declared":           {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", nothing},
		"body shorter than declared, failed":   {"HTTP/1.1 500 Down\r\nContent-Length: 9\r\n\r\nhello", nothing},
		"body shorter than declared, redirect": {"HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\nhello", success},
		"chunks":                               {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", success},
		"chunks with a trailer":                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nhe\r\n0\r\nX: a\r\n\r\n", success},
		"chunks with extensions":               {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n0\r\n\r\n", success},
		"chunks without an end":                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", nothing},
		"half a chunk":                         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhe", nothing},
		"bad chunk":                            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhe\r\n", nothing},
		"chunk longer than declared":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nhello\r\n0\r\n\r\n", nothing},
		"chunks with a length":                 {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n0\r\n\r\n", success},
		"HTTP/1.0 with chunks":                 {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n0\r\n\r\n", success},
		"other encoding":                       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello", failure},
		"two encodings":                        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", failure},
		"body declared as compressed":          {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello", success},
		"body just under the limit":            {"HTTP/1.1 200 OK\r\n\r\n" + big[1:], success},
		"body at the limit":                    {"HTTP/1.1 200 OK\r\n\r\n" + big, success},
		"body at the limit, cut after":         {"HTTP/1.1 200 OK\r\nContent-Length: 10241\r\n\r\n" + big, success},
		"body under the limit, cut":            {"HTTP/1.1 200 OK\r\nContent-Length: 10241\r\n\r\n" + big[1:], nothing},
		"body of 1 MiB":                        {"HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 1<<20), success},
		"failure with a huge body":             {"HTTP/1.1 500 Down\r\n\r\n" + strings.Repeat("x", 1<<20), failure},
		"invalid UTF-8 body":                   {"HTTP/1.1 200 OK\r\n\r\na\xff\xfeb\x00c", success},
		"body of white space":                  {"HTTP/1.1 200 OK\r\n\r\n \r\n\t ", success},
		"body with percent signs":              {"HTTP/1.1 200 OK\r\n\r\n100%s %d %!", success},
		"failure does not show its body":       {"HTTP/1.1 401 Who\r\nWWW-Authenticate: Basic\r\nContent-Length: 6\r\n\r\nsecret", failure},
		"204 with a body":                      {"HTTP/1.1 204 None\r\nContent-Length: 5\r\n\r\nhello", success},
		"100 before the reply":                 {"HTTP/1.1 100 Continue\r\n\r\n" + ok, success},
		"103 before the reply":                 {"HTTP/1.1 103 Hints\r\nLink: </x>\r\n\r\n" + ok, success},
		"five interim replies":                 {strings.Repeat("HTTP/1.1 102 Wait\r\n\r\n", 5) + ok, success},
		"many interim replies":                 {strings.Repeat("HTTP/1.1 102 Wait\r\n\r\n", 50) + ok, success},
		"only an interim reply":                {"HTTP/1.1 102 Wait\r\n\r\n", failure},
		"switch of protocols":                  {"HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", failure},
		"two replies":                          {ok + ok, success},
		"TLS alert":                            {"\x15\x03\x01\x00\x02\x02\x46", failure},
		"HTTP/2 settings":                      {"\x00\x00\x00\x04\x00\x00\x00\x00\x00", failure},
		"NUL bytes":                            {strings.Repeat("\x00", 100), failure},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			compare(t, httpGet(), wire(say(tc.reply)), ample, tc.want, verbatim)
		})
	}
}

// TestHTTPConnections probes servers that do not accept connections or do not complete responses.
func TestHTTPConnections(t *testing.T) {
	const shortTimeout = 500 * time.Millisecond
	cut := say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
	head := say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
	trickle := func(conn net.Conn, _ *peer, _ int) {
		for range 100 {
			if _, err := conn.Write([]byte("x")); err != nil {
				return
			}
			<-time.After(shortTimeout / 10)
		}
	}
	cases := map[string]struct {
		serve   func(*testing.T) *peer
		timeout time.Duration
		want    conclusion
	}{
		"refused":                            {refusing(), ample, failure},
		"host that does not answer":          {unanswering(), shortTimeout, failure},
		"reset after the request":            {wire(reset), ample, failure},
		"reset within the status line":       {wire(then(say("HTTP/1.1 2"), reset)), ample, failure},
		"reset within the body":              {wire(then(head, reset)), ample, nothing},
		"closed after the request":           {wire(say("")), ample, failure},
		"no reply":                           {wire(linger), shortTimeout, failure},
		"half a status line, then silence":   {wire(then(say("HTTP/1.1 2"), linger)), shortTimeout, failure},
		"half the headers, then silence":     {wire(then(say("HTTP/1.1 200 OK\r\nX: y"), linger)), shortTimeout, failure},
		"interim reply, then silence":        {wire(then(say("HTTP/1.1 100 Continue\r\n\r\n"), linger)), shortTimeout, failure},
		"headers, then silence":              {wire(then(head, linger)), shortTimeout, nothing},
		"headers of a failure, then silence": {wire(then(say("HTTP/1.1 500 Down\r\nContent-Length: 9\r\n\r\n"), linger)), shortTimeout, nothing},
		"half a body, then silence":          {wire(then(cut, linger)), shortTimeout, nothing},
		"body without end or length":         {wire(then(say("HTTP/1.1 200 OK\r\n\r\n"), trickle)), shortTimeout, nothing},
		"headers that trickle":               {wire(then(say("HTTP/1.1 200 OK\r\nX: "), trickle)), shortTimeout, failure},
		"complete body, then silence":        {wire(then(say(ok), linger)), ample, success},
		"huge body, then silence": {
			wire(then(say("HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"+strings.Repeat("x", 10<<10)), linger)), ample, success,
		},
		"redirect, then silence": {
			wire(inTurn(say("HTTP/1.1 302 Go\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"), linger)), shortTimeout, failure,
		},
		"redirect whose body is cut": {
			wire(inTurn(say("HTTP/1.1 302 Go\r\nLocation: /b\r\nContent-Length: 9\r\n\r\nx"), say(ok))), ample, success,
		},
		"one broken body, then a complete one":     {wire(inTurn(cut, say(ok))), ample, success},
		"two broken bodies, then a complete one":   {wire(inTurn(cut, cut, say(ok))), ample, success},
		"two broken bodies, then a failure":        {wire(inTurn(cut, cut, say("HTTP/1.1 500 Down\r\nContent-Length: 0\r\n\r\n"))), ample, failure},
		"three broken bodies, then a complete one": {wire(inTurn(cut, cut, cut, say(ok))), ample, nothing},
		"on IPv6": {onIPv6, ample, success},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, httpGet(), tc.serve, tc.timeout, tc.want, verbatim)
		})
	}
}

// TestHTTPEarlyReset resets connections before the request. Which call of the client fails, and
// therefore the message, is random.
func TestHTTPEarlyReset(t *testing.T) {
	compare(t, httpGet(), resetting(), ample, failure, skipMessages)
}

// onIPv6 serves on ::1 if the machine has IPv6, and on 127.0.0.1 otherwise.
func onIPv6(t *testing.T) *peer {
	t.Helper()
	listener := probetest.IPv6(t)
	if listener == nil {
		listener = probetest.Listen(t, "127.0.0.1:0")
	}
	return serveOn(t, listener, say(ok))
}

// TestLargeAnswers covers servers that send more than Seamark reads. The probes of the kubelet
// succeed, and those of Seamark fail with a message that names the limit.
func TestLargeAnswers(t *testing.T) {
	const okay = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
	redirect := "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /" + strings.Repeat("x", 3<<10) + "\r\n\r\n"
	names := func(c *x509.Certificate) {
		for i := range 400 {
			c.DNSNames = append(c.DNSNames, fmt.Sprintf("%d.example.com", i))
		}
	}
	padding := func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 9}, Value: make([]byte, 20<<10)}}
	}
	response := func(bytes int) answers {
		return answers{"": func() (*grpc_health_v1.HealthCheckResponse, error) {
			out := &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}
			out.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 9, protowire.BytesType), make([]byte, bytes)))
			return out, nil
		}}
	}
	cases := map[string]struct {
		spec  *corev1.Probe
		serve func(*testing.T) *peer
		says  string
	}{
		"long header": {
			httpGet(), wire(say(okay + "X: " + strings.Repeat("x", 9<<10) + "\r\n\r\n")), "server response headers exceeded 8192 bytes",
		},
		"many headers":            {httpGet(), wire(say(okay + strings.Repeat("X: y\r\n", 2<<10) + "\r\n")), "server response headers exceeded 8192 bytes"},
		"many interim replies":    {httpGet(), wire(say(strings.Repeat("HTTP/1.1 102 Wait\r\n\r\n", 400) + ok)), "server response headers exceeded 8192 bytes"},
		"long redirect":           {httpGet(), wire(inTurn(say(redirect), say(ok))), "bytes, must have at most 2048"},
		"certificate of 20 KiB":   {httpGet(https), overTLS(with(padding), false, yes), "TLS handshake exceeded 16384 bytes"},
		"certificate with names":  {httpGet(https), overTLS(with(names), false, yes), "names and extensions, must have at most 300"},
		"gRPC response of 10 KiB": {grpcService(""), healthServer(response(10 << 10)), "ResourceExhausted: "},
		"gRPC response of 64 KiB": {grpcService(""), healthServer(response(64 << 10)), "health check failed: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := tc.serve(t)
			theirs := kubelet(t, at(tc.spec, server.port), server.ip, ample)
			server = tc.serve(t)
			ours := seamark(t, at(tc.spec, server.port), server.ip, ample)
			if theirs.Conclusion != success || ours.Conclusion != failure || !strings.Contains(ours.Message, tc.says) {
				t.Errorf("the kubelet returns %+v, want success; Seamark returns %+v, want a failure with %q", theirs, ours, tc.says)
			}
		})
	}
}
