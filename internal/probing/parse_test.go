// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/internal/probing"
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

// grpcMode returns a grpc probe with the mode.
func grpcMode(mode corev1.GRPCProbeMode) *corev1.Probe {
	return spec(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9000, Mode: &mode}})
}

// httpProtocol returns an httpGet probe with the protocol.
func httpProtocol(protocol corev1.HTTPProtocol, scheme corev1.URIScheme) *corev1.Probe {
	return httpSpec(func(a *corev1.HTTPGetAction) { a.Protocol, a.Scheme = &protocol, scheme })
}

func spec(handler corev1.ProbeHandler) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: handler, TimeoutSeconds: 2}
}

func httpTarget(scheme, host, path, query string) probe.Target {
	return probe.Target{Handler: probe.HandlerHTTP, Timeout: 2 * time.Second, HTTP: &probe.HTTP{
		URL: &url.URL{Scheme: scheme, Host: host, Path: path, RawQuery: query}, Header: http.Header{},
	}}
}

func TestParse(t *testing.T) {
	service := "game"
	headers := httpTarget("http", "10.0.0.7:8080", "/", "")
	headers.HTTP.Header = http.Header{"X-Game": {"a", "b"}, "Accept": {""}, "Host": {"game.example.com"}}
	headers.HTTP.Host = "game.example.com"

	http2 := httpTarget("http", "10.0.0.7:8080", "/", "")
	http2.HTTP.HTTP2 = true

	cases := map[string]struct {
		spec *corev1.Probe
		ip   string
		want probe.Target
	}{
		"exec": {
			spec: execSpec("cat", "/idle"), ip: "",
			want: probe.Target{Handler: probe.HandlerExec, Timeout: 2 * time.Second, Exec: &probe.Exec{Command: []string{"cat", "/idle"}}},
		},
		"http": {
			spec: httpSpec(func(*corev1.HTTPGetAction) {}), ip: "10.0.0.7",
			want: httpTarget("http", "10.0.0.7:8080", "/", ""),
		},
		"https with path and query": {
			spec: httpSpec(func(a *corev1.HTTPGetAction) { a.Scheme, a.Path = corev1.URISchemeHTTPS, "/idle?full=1&x=a%20b" }),
			ip:   "10.0.0.7",
			want: httpTarget("https", "10.0.0.7:8080", "/idle", "full=1&x=a%20b"),
		},
		"http on IPv6": {
			spec: httpSpec(func(*corev1.HTTPGetAction) {}), ip: "fd00::7",
			want: httpTarget("http", "[fd00::7]:8080", "/", ""),
		},
		"http without scheme and path": {
			spec: httpSpec(func(a *corev1.HTTPGetAction) { a.Scheme, a.Path = "", "" }), ip: "10.0.0.7",
			want: httpTarget("http", "10.0.0.7:8080", "", ""),
		},
		"path that cannot be parsed": {
			spec: httpSpec(func(a *corev1.HTTPGetAction) { a.Path = "/100%" }), ip: "10.0.0.7",
			want: httpTarget("http", "10.0.0.7:8080", "/100%", ""),
		},
		"host in the path": {
			spec: httpSpec(func(a *corev1.HTTPGetAction) { a.Path = "//example.com/x" }), ip: "10.0.0.7",
			want: httpTarget("http", "10.0.0.7:8080", "/x", ""),
		},
		"http headers": {
			spec: httpSpec(func(a *corev1.HTTPGetAction) {
				a.HTTPHeaders = []corev1.HTTPHeader{
					{Name: "x-game", Value: "a"}, {Name: "X-Game", Value: "b"},
					{Name: "host", Value: "game.example.com"}, {Name: "accept", Value: ""},
				}
			}),
			ip: "10.0.0.7", want: headers,
		},
		"http with protocol HTTP1": {
			spec: httpProtocol(corev1.HTTPProtocolHTTP1, "HTTP"), ip: "10.0.0.7",
			want: httpTarget("http", "10.0.0.7:8080", "/", ""),
		},
		"http with protocol HTTP2": {spec: httpProtocol(corev1.HTTPProtocolHTTP2, "HTTP"), ip: "10.0.0.7", want: http2},
		"tcp": {
			spec: tcpSpec("", intstr.FromInt32(65535)), ip: "10.0.0.7",
			want: probe.Target{Handler: probe.HandlerTCP, Timeout: 2 * time.Second, TCP: &probe.TCP{Address: "10.0.0.7:65535"}},
		},
		"tcp on IPv6": {
			spec: tcpSpec("", intstr.FromInt32(1)), ip: "::1",
			want: probe.Target{Handler: probe.HandlerTCP, Timeout: 2 * time.Second, TCP: &probe.TCP{Address: "[::1]:1"}},
		},
		"grpc": {
			spec: grpcSpec(9000, nil), ip: "10.0.0.7",
			want: probe.Target{Handler: probe.HandlerGRPC, Timeout: 2 * time.Second, GRPC: &probe.GRPC{Address: "10.0.0.7:9000"}},
		},
		"grpc in plain text": {
			spec: grpcMode(corev1.GRPCProbeModePlaintext), ip: "10.0.0.7",
			want: probe.Target{Handler: probe.HandlerGRPC, Timeout: 2 * time.Second, GRPC: &probe.GRPC{Address: "10.0.0.7:9000"}},
		},
		"grpc with TLS": {
			spec: grpcMode(corev1.GRPCProbeModeTLS), ip: "10.0.0.7",
			want: probe.Target{Handler: probe.HandlerGRPC, Timeout: 2 * time.Second, GRPC: &probe.GRPC{Address: "10.0.0.7:9000", TLS: true}},
		},
		"grpc with a service": {
			spec: grpcSpec(9000, &service), ip: "10.0.0.7",
			want: probe.Target{Handler: probe.HandlerGRPC, Timeout: 2 * time.Second, GRPC: &probe.GRPC{Address: "10.0.0.7:9000", Service: "game"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := probe.Parse(tc.spec, tc.ip)
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(sameURL)); diff != "" {
				t.Errorf("Parse() (-want +got):\n%s", diff)
			}
		})
	}
}

// sameURL compares the text of two URLs.
func sameURL(a, b *url.URL) bool { return a.String() == b.String() }

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
		"unknown scheme":      {spec: httpSpec(func(a *corev1.HTTPGetAction) { a.Scheme = "FTP" }), ip: "::1", want: []string{"httpGet.scheme", "FTP", "HTTP or HTTPS"}},
		"unknown protocol":    {spec: httpProtocol("HTTP3", "HTTP"), ip: "::1", want: []string{"httpGet.protocol", "HTTP3", "HTTP1 or HTTP2"}},
		"HTTP2 with HTTPS":    {spec: httpProtocol("HTTP2", "HTTPS"), ip: "::1", want: []string{"httpGet.protocol", "HTTP2", "scheme must be HTTP"}},
		"unknown mode":        {spec: grpcMode("mTLS"), ip: "::1", want: []string{"grpc.mode", "mTLS", "Plaintext or TLS"}},
		"path without root":   {spec: httpSpec(func(a *corev1.HTTPGetAction) { a.Path = "mailto:x" }), ip: "::1", want: []string{"httpGet.path", "mailto:x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := probe.Parse(tc.spec, tc.ip)
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
		target, err := probe.Parse(httpSpec(func(a *corev1.HTTPGetAction) { a.Path = path }), "10.0.0.7")
		if err == nil && target.HTTP.URL.Host != "10.0.0.7:8080" {
			t.Errorf("path %q: request goes to %q", path, target.HTTP.URL.Host)
		}
	})
}
