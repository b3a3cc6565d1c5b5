// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/internal/local/listener"
	"github.com/seamark-dev/seamark/internal/probing"
)

type proberFunc func() (probing.Outcome, error)

func (f proberFunc) Probe(context.Context, probing.Target) (probing.Outcome, error) { return f() }

func TestNetworkProbeOfEndedContainerHasNoResult(t *testing.T) {
	for name, test := range map[string]struct {
		ends bool
		err  error
		want string
	}{
		"running container":                {},
		"container ends during the probe":  {ends: true, want: "container c ended"},
		"probe error of a running process": {err: errors.New("cancelled"), want: "cancelled"},
		"probe error of an ended one":      {ends: true, err: errors.New("cancelled"), want: "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			running := true
			prober := networkProber{
				Prober: proberFunc(func() (probing.Outcome, error) {
					running = !test.ends
					return probing.Outcome{Success: true}, test.err
				}),
				runs:    func(id string) bool { return running && id == "c" },
				foreign: func(types.UID, netip.AddrPort) string { return "" },
			}
			outcome, err := prober.Probe(t.Context(), probing.Target{ContainerID: "c"})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want || outcome.Success != (test.want == "" || test.err != nil) {
				t.Errorf("got %+v and error %q, want error %q", outcome, got, test.want)
			}
		})
	}
}

func TestNetworkProbeFailsIfAnotherProcessAnswers(t *testing.T) {
	const uid = "00000000-0000-0000-0000-000000000001"
	for name, test := range map[string]struct {
		target  probing.Target
		foreign bool
	}{
		"HTTP":         {probing.Target{HTTP: &probing.HTTP{URL: &url.URL{Scheme: "http", Host: "127.64.0.2:8080"}}}, true},
		"TCP":          {probing.Target{TCP: &probing.TCP{Address: "127.64.0.2:8080"}}, true},
		"gRPC":         {probing.Target{GRPC: &probing.GRPC{Address: "127.64.0.2:8080"}}, true},
		"host name":    {probing.Target{TCP: &probing.TCP{Address: "example.com:8080"}}, false},
		"another port": {probing.Target{TCP: &probing.TCP{Address: "127.64.0.2:8081"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.target.ContainerID = uid + "-main-0"
			prober := networkProber{
				Prober: proberFunc(func() (probing.Outcome, error) { return probing.Outcome{Success: true}, nil }),
				runs:   func(string) bool { return true },
				foreign: func(pod types.UID, target netip.AddrPort) string {
					if pod == uid && target == netip.MustParseAddrPort("127.64.0.2:8080") {
						return "process other (PID 7) listens on 0.0.0.0:8080"
					}
					return ""
				},
			}
			outcome, err := prober.Probe(t.Context(), test.target)
			if err != nil || outcome.Success == test.foreign || test.foreign && !strings.HasPrefix(outcome.Message,
				"another process answers on port 8080: process other (PID 7) listens on 0.0.0.0:8080") {
				t.Errorf("got %+v and error %v", outcome, err)
			}
		})
	}
}

func TestTakenPorts(t *testing.T) {
	spec := func(c corev1.Container) corev1.PodSpec { return corev1.PodSpec{Containers: []corev1.Container{c}} }
	tcp := func(port int, host string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(port), Host: host}}}
	}
	declared := spec(corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: 8080}}})
	const taken = "port 8080 of pod p is taken: process other (PID 7) listens on "
	for name, test := range map[string]struct {
		spec    corev1.PodSpec
		address string
		want    string
	}{
		"declared port":       {declared, "127.64.0.2:8080", taken + "127.64.0.2:8080: stop it, or use another port"},
		"all addresses":       {declared, "0.0.0.0:8080", taken + "0.0.0.0:8080: stop it, or use another port"},
		"all IPv6 addresses":  {declared, "[::]:8080", taken + "[::]:8080: stop it, or use another port"},
		"only IPv6 addresses": {spec(corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: 8082}}}), "[::]:8082", ""},
		"another address":     {declared, "127.0.0.1:8080", ""},
		"another port":        {declared, "0.0.0.0:8081", ""},
		"UDP":                 {spec(corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: 8080, Protocol: "UDP"}}}), "0.0.0.0:8080", ""},
		"probed port": {
			spec(corev1.Container{ReadinessProbe: tcp(8080, "")}), "0.0.0.0:8080", taken + "0.0.0.0:8080: stop it, or use another port",
		},
		"probed port of another host": {spec(corev1.Container{ReadinessProbe: tcp(8080, "example.com")}), "0.0.0.0:8080", ""},
		"declared and probed, one error": {spec(corev1.Container{
			Ports: []corev1.ContainerPort{{ContainerPort: 8080}}, ReadinessProbe: tcp(8080, "")}), "0.0.0.0:8080",
			taken + "0.0.0.0:8080: stop it, or use another port"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pod{object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: test.spec, Status: corev1.PodStatus{PodIP: "127.64.0.2"}}}
			all := []listener.Listener{{Address: netip.MustParseAddrPort(test.address)}}
			err := takenPorts([]*pod{p}, nil, all, func(listener.Listener) owner { return owner{name: "process other (PID 7)"} },
				func(address netip.AddrPort) bool { return address.Port() == 8082 })
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWorkaround(t *testing.T) {
	if got := (owner{pod: true}).workaround(); !strings.Contains(got, "status.podIP") {
		t.Errorf("for a pod: %q, want the field reference", got)
	}
	if got := (owner{}).workaround(); got != "stop it, or use another port" {
		t.Errorf("for a process: %q", got)
	}
}
