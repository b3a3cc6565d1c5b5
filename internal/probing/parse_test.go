// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probing_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/expect"
)

func execSpec(command ...string) *corev1.Probe {
	return spec(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}})
}

func httpSpec(edit func(*corev1.HTTPGetAction)) *corev1.Probe {
	action := &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080), Scheme: corev1.URISchemeHTTP}
	edit(action)
	return spec(corev1.ProbeHandler{HTTPGet: action})
}

func tcpSpec(host string, port intstr.IntOrString) *corev1.Probe {
	return spec(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: host, Port: port}})
}

func grpcSpec(port int32, service *string) *corev1.Probe {
	return spec(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: port, Service: service}})
}

func grpcMode(mode corev1.GRPCProbeMode) *corev1.Probe {
	return spec(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9000, Mode: &mode}})
}

func httpProtocol(protocol corev1.HTTPProtocol, scheme corev1.URIScheme) *corev1.Probe {
	return httpSpec(func(a *corev1.HTTPGetAction) { a.Protocol, a.Scheme = &protocol, scheme })
}

func spec(handler corev1.ProbeHandler) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: handler, TimeoutSeconds: 2}
}

// textOf returns a target as text: its handler, its address, and what else is set.
func textOf(target probing.Target) string {
	text := fmt.Sprint(target.Handler, " for ", target.Timeout)
	switch {
	case target.Exec != nil:
		text += fmt.Sprintf(": %q", target.Exec.Command)
	case target.HTTP != nil:
		text += fmt.Sprintf(": %s %v", target.HTTP.URL, target.HTTP.Header)
		if target.HTTP.Host != "" {
			text += " of " + target.HTTP.Host
		}
		if target.HTTP.HTTP2 {
			text += " with HTTP/2"
		}
	case target.TCP != nil:
		text += ": " + target.TCP.Address
	case target.GRPC != nil:
		text += fmt.Sprintf(": %s %q", target.GRPC.Address, target.GRPC.Service)
		if target.GRPC.TLS {
			text += " with TLS"
		}
	}
	return text
}

func TestParse(t *testing.T) {
	service := "game"
	path := func(scheme corev1.URIScheme, path string) *corev1.Probe {
		return httpSpec(func(a *corev1.HTTPGetAction) { a.Scheme, a.Path = scheme, path })
	}
	headers := httpSpec(func(a *corev1.HTTPGetAction) {
		a.HTTPHeaders = []corev1.HTTPHeader{
			{Name: "x-game", Value: "a"}, {Name: "X-Game", Value: "b"},
			{Name: "host", Value: "game.example.com"}, {Name: "accept", Value: ""},
		}
	})
	cases := map[string]struct {
		spec     *corev1.Probe
		ip, want string
	}{
		"exec":                         {execSpec("cat", "/idle"), "", `exec for 2s: ["cat" "/idle"]`},
		"http":                         {path("HTTP", "/"), "10.0.0.7", "httpGet for 2s: http://10.0.0.7:8080/ map[]"},
		"https with path and query":    {path("HTTPS", "/idle?full=1&x=a%20b"), "10.0.0.7", "httpGet for 2s: https://10.0.0.7:8080/idle?full=1&x=a%20b map[]"},
		"http on IPv6":                 {path("HTTP", "/"), "fd00::7", "httpGet for 2s: http://[fd00::7]:8080/ map[]"},
		"http without scheme and path": {path("", ""), "10.0.0.7", "httpGet for 2s: http://10.0.0.7:8080 map[]"},
		"path that cannot be parsed":   {path("HTTP", "/100%"), "10.0.0.7", "httpGet for 2s: http://10.0.0.7:8080/100%25 map[]"},
		"host in the path":             {path("HTTP", "//example.com/x"), "10.0.0.7", "httpGet for 2s: http://10.0.0.7:8080/x map[]"},
		"http headers": {
			headers, "10.0.0.7", "httpGet for 2s: http://10.0.0.7:8080/ map[Accept:[] Host:[game.example.com] X-Game:[a b]] of game.example.com",
		},
		"http with protocol HTTP1": {httpProtocol("HTTP1", "HTTP"), "10.0.0.7", "httpGet for 2s: http://10.0.0.7:8080/ map[]"},
		"http with protocol HTTP2": {httpProtocol("HTTP2", "HTTP"), "10.0.0.7", "httpGet for 2s: http://10.0.0.7:8080/ map[] with HTTP/2"},
		"tcp":                      {tcpSpec("", intstr.FromInt32(65535)), "10.0.0.7", "tcpSocket for 2s: 10.0.0.7:65535"},
		"tcp on IPv6":              {tcpSpec("", intstr.FromInt32(1)), "::1", "tcpSocket for 2s: [::1]:1"},
		"grpc":                     {grpcSpec(9000, nil), "10.0.0.7", `grpc for 2s: 10.0.0.7:9000 ""`},
		"grpc in plain text":       {grpcMode("Plaintext"), "10.0.0.7", `grpc for 2s: 10.0.0.7:9000 ""`},
		"grpc with TLS":            {grpcMode("TLS"), "10.0.0.7", `grpc for 2s: 10.0.0.7:9000 "" with TLS`},
		"grpc with a service":      {grpcSpec(9000, &service), "10.0.0.7", `grpc for 2s: 10.0.0.7:9000 "game"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := probing.Parse(tc.spec, tc.ip)
			expect.NoError(t, err)
			expect.Equal(t, "Parse()", tc.want, textOf(got))
		})
	}
}

func TestParseRejectsInvalidProbe(t *testing.T) {
	noTimeout := execSpec("true")
	noTimeout.TimeoutSeconds = 0
	both := execSpec("true")
	both.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}

	cases := map[string]struct {
		spec *corev1.Probe
		ip   string
		want []string
	}{
		"no probe":            {spec: nil, want: []string{"exec, httpGet, tcpSocket and grpc", "none"}},
		"no handler":          {spec: spec(corev1.ProbeHandler{}), want: []string{"exec, httpGet, tcpSocket and grpc", "none"}},
		"two handlers":        {spec: both, want: []string{"exec and tcpSocket"}},
		"no timeout":          {spec: noTimeout, want: []string{"timeoutSeconds", "0", "1 or more"}},
		"no command":          {spec: execSpec(), want: []string{"exec.command"}},
		"no pod IP":           {spec: tcpSpec("", intstr.FromInt32(80)), want: []string{"pod IP", "IPv4 or IPv6"}},
		"host name as pod IP": {spec: grpcSpec(80, nil), ip: "example.com", want: []string{"pod IP", "example.com"}},
		"pod IP with zone":    {spec: grpcSpec(80, nil), ip: "fe80::1%eth0", want: []string{"pod IP"}},
		"tcp with host":       {spec: tcpSpec("example.com", intstr.FromInt32(80)), ip: "::1", want: []string{"tcpSocket.host", "example.com"}},
		"http with host":      {spec: httpSpec(func(a *corev1.HTTPGetAction) { a.Host = "x" }), ip: "::1", want: []string{"httpGet.host"}},
		"named port":          {spec: tcpSpec("", intstr.FromString("web")), ip: "::1", want: []string{"tcpSocket.port", "web", "between 1 and 65535"}},
		"port 0":              {spec: grpcSpec(0, nil), ip: "::1", want: []string{"grpc.port", "between 1 and 65535"}},
		"port 65536":          {spec: tcpSpec("", intstr.FromInt32(65536)), ip: "::1", want: []string{"tcpSocket.port", "65536"}},
		"unknown scheme": {
			spec: httpSpec(func(a *corev1.HTTPGetAction) { a.Scheme = "FTP" }), ip: "::1", want: []string{"httpGet.scheme", "FTP", "HTTP or HTTPS"},
		},
		"unknown protocol":  {spec: httpProtocol("HTTP3", "HTTP"), ip: "::1", want: []string{"httpGet.protocol", "HTTP3", "HTTP1 or HTTP2"}},
		"HTTP2 with HTTPS":  {spec: httpProtocol("HTTP2", "HTTPS"), ip: "::1", want: []string{"httpGet.protocol", "HTTP2", "scheme must be HTTP"}},
		"unknown mode":      {spec: grpcMode("mTLS"), ip: "::1", want: []string{"grpc.mode", "mTLS", "Plaintext or TLS"}},
		"path without root": {spec: httpSpec(func(a *corev1.HTTPGetAction) { a.Path = "mailto:x" }), ip: "::1", want: []string{"httpGet.path", "mailto:x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := probing.Parse(tc.spec, tc.ip)
			if err == nil {
				t.Fatalf("Parse() = %v, want an error", got)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error = %q, want it to contain %q", err, part)
				}
			}
		})
	}
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"/", "", "/a?b=c#d", "//host/x", "x:y", "/100%", "http://user@host/x", "a b", "?q", "\x7f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		target, err := probing.Parse(httpSpec(func(a *corev1.HTTPGetAction) { a.Path = path }), "10.0.0.7")
		if err == nil && target.HTTP.URL.Host != "10.0.0.7:8080" {
			t.Errorf("path %q: request goes to %q", path, target.HTTP.URL.Host)
		}
	})
}
