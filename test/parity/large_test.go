// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
)

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
		"long header":             {httpGet(), wire(say(okay + "X: " + strings.Repeat("x", 9<<10) + "\r\n\r\n")), "server response headers exceeded 8192 bytes"},
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
