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

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/version"
	kubeprobe "k8s.io/kubernetes/pkg/probe"
	kubegrpc "k8s.io/kubernetes/pkg/probe/grpc"
	kubehttp "k8s.io/kubernetes/pkg/probe/http"
	kubetcp "k8s.io/kubernetes/pkg/probe/tcp"

	"github.com/seamark-dev/seamark/internal/probe"
	"github.com/seamark-dev/seamark/internal/probe/probers"
)

// ample is a timeout for what answers.
const ample = 20 * time.Second

// tries is how often the kubelet's worker asks while there is no answer.
const tries = 3

// judgement is what a probe concludes.
type judgement string

const (
	success judgement = "success"
	failure judgement = "failure"
	// nothing is an error: neither side counts it.
	nothing judgement = "nothing"
	// refused is a probe that Seamark does not take into its plan.
	refused judgement = "refused"
)

// verdict is the result of one probe, in the same terms for both sides.
type verdict struct {
	Judgement judgement
	Message   string
}

// side is one of the two implementations: it runs a probe of core/v1 once.
type side func(t *testing.T, spec *corev1.Probe, ip string, timeout time.Duration) verdict

// kubelet runs a network probe with Kubernetes' own probers, called as its worker calls them.
func kubelet(t *testing.T, spec *corev1.Probe, ip string, timeout time.Duration) verdict {
	t.Helper()
	var result kubeprobe.Result
	var message string
	var err error
	for range tries {
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
	return verdict{Judgement: nothing, Message: err.Error()}
}

// kubeletVerdict reads a result as the kubelet's worker does: a warning is a success. The
// message is cut as Seamark cuts its own.
func kubeletVerdict(t *testing.T, result kubeprobe.Result, message string) verdict {
	t.Helper()
	message = probe.Message([]byte(message))
	switch result {
	case kubeprobe.Success, kubeprobe.Warning:
		return verdict{success, message}
	case kubeprobe.Failure:
		return verdict{failure, message}
	default:
		t.Errorf("the kubelet's prober says %q without an error", result)
		return verdict{nothing, message}
	}
}

// seamark runs a network probe as the agent does.
func seamark(t *testing.T, spec *corev1.Probe, ip string, timeout time.Duration) verdict {
	t.Helper()
	target, err := probe.Parse(spec, ip)
	if err != nil {
		return verdict{Judgement: refused, Message: err.Error()}
	}
	target.Timeout = timeout
	// Only network probes are compared here.
	return seamarkVerdict(probers.New(nil, userAgentVersion()).Probe(t.Context(), target))
}

func seamarkVerdict(outcome probe.Outcome, err error) verdict {
	switch {
	case err != nil:
		return verdict{nothing, err.Error()}
	case outcome.Success:
		return verdict{success, outcome.Message}
	default:
		return verdict{failure, outcome.Message}
	}
}

// userAgentVersion is the version that this build of the kubelet's packages calls itself.
func userAgentVersion() string {
	v := version.Get()
	return fmt.Sprintf("%s.%s", v.Major, v.Minor)
}

// seen is what one side concludes, and what its server read of it.
type seen struct {
	Verdict  verdict
	Requests []string
}

// sameWords says how far the two sides' messages are compared.
type sameWords bool

const (
	// verbatim compares them letter by letter, but for the addresses in them.
	verbatim sameWords = true
	// ownWords leaves them out: Seamark words that answer itself.
	ownWords sameWords = false
)

// compare has both sides probe a server of their own, made by serve, and fails unless
// both conclude want and send the same. It returns Seamark's side.
func compare(t *testing.T, spec *corev1.Probe, serve func(*testing.T) *peer, timeout time.Duration, want judgement, words sameWords) seen {
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
	if theirs.Verdict.Judgement != want {
		t.Errorf("the kubelet says %+v, want %s", theirs.Verdict, want)
	}
	full := ours
	if !words || want == nothing {
		theirs.Verdict.Message, ours.Verdict.Message = "", ""
	}
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("-kubelet +seamark:\n%s", diff)
	}
	return full
}

// at is the probe of a server's port.
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

// normal replaces what differs between two servers and two connections. How net/http words
// the end of its timeout is chance: several of its goroutines notice, and one is first.
func normal(text string, server *peer) string {
	text = strings.ReplaceAll(text, server.address(), "SERVER")
	text = regexp.MustCompile(`(127\.0\.0\.1|\[::1\]):\d+->`).ReplaceAllString(text, "CLIENT->")
	return regexp.MustCompile(`(Get "[^"]*"): .*(deadline exceeded|timeout|request canceled|Client\.Timeout).*`).ReplaceAllString(text, "$1: TIMEOUT")
}

// spec is a probe with a handler and the least it needs.
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

// headers takes names and values in turn.
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

// errNoAnswer is what a test's runtime says when it can't tell.
var errNoAnswer = errors.New("connection lost")
