// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/version"
	kubeprobe "k8s.io/kubernetes/pkg/probe"
	kubegrpc "k8s.io/kubernetes/pkg/probe/grpc"
	kubehttp "k8s.io/kubernetes/pkg/probe/http"
	kubetcp "k8s.io/kubernetes/pkg/probe/tcp"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/probers"
	"github.com/seamark-dev/seamark/internal/probing/slots"
	"github.com/seamark-dev/seamark/test/expect"
)

// ample is a timeout that only a hang reaches.
const ample = 20 * time.Second

// maxAttempts is how often the kubelet's worker runs a probe until it has a result.
const maxAttempts = 3

type conclusion string

const (
	success conclusion = "success"
	failure conclusion = "failure"
	// nothing is an error, which neither side counts.
	nothing conclusion = "nothing"
	// rejected is a probe that Seamark does not plan.
	rejected conclusion = "rejected"
)

// verdict is the result of one probe, in a common form for both sides.
type verdict struct {
	Conclusion conclusion
	Message    string
}

// side is one of the two implementations. It runs a core/v1 probe once.
type side func(t *testing.T, spec *corev1.Probe, ip string, timeout time.Duration) verdict

// kubelet runs a network probe with the kubelet's probers, called as by its worker.
func kubelet(t *testing.T, spec *corev1.Probe, ip string, timeout time.Duration) verdict {
	t.Helper()
	var result kubeprobe.Result
	var message string
	var err error
	for range maxAttempts {
		switch {
		case spec.HTTPGet != nil:
			request, requestErr := kubehttp.NewRequestForHTTPGetAction(spec.HTTPGet, &corev1.Container{}, ip, "probe")
			if err = requestErr; err == nil {
				result, message, err = kubehttp.New(false).Probe(request, timeout)
			}
		case spec.TCPSocket != nil:
			result, message, err = kubetcp.New().Probe(ip, spec.TCPSocket.Port.IntValue(), timeout)
		case spec.GRPC != nil:
			result, message, err = kubegrpc.New().Probe(ip, *spec.GRPC.Service, int(spec.GRPC.Port), timeout)
		}
		if err == nil {
			return kubeletVerdict(t, result, message)
		}
	}
	return verdict{Conclusion: nothing, Message: err.Error()}
}

// kubeletVerdict converts a result as the kubelet's worker does: a warning is a success. The
// message is truncated like Seamark's.
func kubeletVerdict(t *testing.T, result kubeprobe.Result, message string) verdict {
	t.Helper()
	message = probing.Message([]byte(message))
	switch result {
	case kubeprobe.Success, kubeprobe.Warning:
		return verdict{success, message}
	case kubeprobe.Failure:
		return verdict{failure, message}
	default:
		t.Errorf("the kubelet's prober returned %q without an error", result)
		return verdict{nothing, message}
	}
}

// seamark runs a network probe as the agent does.
func seamark(t *testing.T, spec *corev1.Probe, ip string, timeout time.Duration) verdict {
	t.Helper()
	target, err := probing.Parse(spec, ip)
	if err != nil {
		return verdict{Conclusion: rejected, Message: err.Error()}
	}
	target.Timeout = timeout
	if target.HTTP != nil {
		// The marker decides what is published. The evaluation does not depend on it.
		target.HTTP.PublishBody = true
	}
	// Only network probes are compared here.
	return seamarkVerdict(probers.New(nil, slots.New(probers.NetworkSlots, nil), userAgentVersion()).Probe(t.Context(), target))
}

func seamarkVerdict(outcome probing.Outcome, err error) verdict {
	switch {
	case err != nil:
		return verdict{nothing, err.Error()}
	case outcome.Success:
		return verdict{success, outcome.Message}
	default:
		return verdict{failure, outcome.Message}
	}
}

// userAgentVersion returns the version of the kubelet's packages in this build.
func userAgentVersion() string {
	v := version.Get()
	return fmt.Sprintf("%s.%s", v.Major, v.Minor)
}

// seen is the verdict of one side and the requests that its server received.
type seen struct {
	Verdict  verdict
	Requests []string
}

// compareMessages reports whether the messages of the two sides are compared.
type compareMessages bool

const (
	// verbatim compares the messages, except the addresses in them.
	verbatim compareMessages = true
	// skipMessages does not compare the messages: Seamark has its own.
	skipMessages compareMessages = false
)

// compare lets both sides probe a server of their own, created by serve. It checks that both
// conclude want and send the same requests, and returns what Seamark's side did.
func compare(t *testing.T, spec *corev1.Probe, serve func(*testing.T) *peer, timeout time.Duration, want conclusion, messages compareMessages) seen {
	t.Helper()
	var theirs, ours seen
	var both sync.WaitGroup
	for out, run := range map[*seen]side{&theirs: kubelet, &ours: seamark} {
		server := serve(t)
		both.Go(func() {
			out.Verdict = run(t, at(spec, server.port), server.ip, timeout)
			out.Requests = server.requests()
			out.Verdict.Message = normal(out.Verdict.Message, server)
		})
	}
	both.Wait()
	if theirs.Verdict.Conclusion != want {
		t.Errorf("the kubelet returns %+v, want %s", theirs.Verdict, want)
	}
	full := ours
	if !messages || want == nothing {
		theirs.Verdict.Message, ours.Verdict.Message = "", ""
	}
	expect.Equal(t, "kubelet and Seamark differ (-kubelet +Seamark)", theirs, ours)
	return full
}

func at(spec *corev1.Probe, port int32) *corev1.Probe {
	spec = spec.DeepCopy()
	switch {
	case spec.HTTPGet != nil:
		spec.HTTPGet.Port.IntVal = port
	case spec.TCPSocket != nil:
		spec.TCPSocket.Port.IntVal = port
	case spec.GRPC != nil:
		spec.GRPC.Port = port
	}
	return spec
}

// normal replaces what differs between servers and connections. The message of net/http about a
// timeout is random: it depends on which of its goroutines notices first.
func normal(text string, server *peer) string {
	text = strings.ReplaceAll(text, server.address(), "SERVER")
	text = regexp.MustCompile(`(127\.0\.0\.1|\[::1\]):\d+->`).ReplaceAllString(text, "CLIENT->")
	return regexp.MustCompile(`(Get "[^"]*"): .*(deadline exceeded|timeout|request canceled|Client\.Timeout).*`).ReplaceAllString(text, "$1: TIMEOUT")
}

func spec(handler corev1.ProbeHandler) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: handler, TimeoutSeconds: 1}
}

func httpGet(edits ...func(*corev1.HTTPGetAction)) *corev1.Probe {
	action := &corev1.HTTPGetAction{Path: "/", Scheme: corev1.URISchemeHTTP}
	for _, edit := range edits {
		edit(action)
	}
	return spec(corev1.ProbeHandler{HTTPGet: action})
}

func path(path string) func(*corev1.HTTPGetAction) {
	return func(a *corev1.HTTPGetAction) { a.Path = path }
}

// headers adds headers, given as alternating names and values.
func headers(namesAndValues ...string) func(*corev1.HTTPGetAction) {
	return func(a *corev1.HTTPGetAction) {
		for i := 0; i < len(namesAndValues); i += 2 {
			a.HTTPHeaders = append(a.HTTPHeaders, corev1.HTTPHeader{Name: namesAndValues[i], Value: namesAndValues[i+1]})
		}
	}
}

func tcpSocket() *corev1.Probe {
	return spec(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}})
}

func grpcService(service string) *corev1.Probe {
	return spec(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Service: &service}})
}

// errNoAnswer is the error of a test's runtime that has no result.
var errNoAnswer = errors.New("connection lost")
