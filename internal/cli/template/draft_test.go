// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/template"
	"github.com/seamark-dev/seamark/test/expect"
)

// The YAML contains exactly the fields of the draft, for values that are not texts without quotes.
func TestYAML(t *testing.T) {
	for name, handler := range map[string]corev1.ProbeHandler{
		"exec":         {Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "echo \"x\"\necho: # y", "a,[b]"}}},
		"http":         {HTTPGet: &corev1.HTTPGetAction{Path: "/a b?c=d", Port: intstr.FromInt32(8080)}},
		"named port":   {TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("y")}},
		"grpc":         {GRPC: &corev1.GRPCAction{Port: 9090}},
		"grpc service": {GRPC: &corev1.GRPCAction{Port: 9090, Service: new("1e3")}},
	} {
		t.Run(name, func(t *testing.T) {
			want := v1alpha1.PodProbeMarker{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apps.kruise.io/v1alpha1", Kind: "PodProbeMarker"},
				ObjectMeta: metav1.ObjectMeta{Name: "123", Namespace: "null"},
				Spec: v1alpha1.PodProbeMarkerSpec{
					Selector: &metav1.LabelSelector{
						MatchLabels: map[string]string{"app": "0x10"},
						MatchExpressions: []metav1.LabelSelectorRequirement{
							{Key: "on", Operator: "In", Values: []string{"yes", "1_000"}}, {Key: "x", Operator: "Exists"},
						},
					},
					Probes: []v1alpha1.PodContainerProbe{{
						Name: "true", ContainerName: "1.5",
						Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
							ProbeHandler: handler, InitialDelaySeconds: 0, PeriodSeconds: 2, TimeoutSeconds: 3, SuccessThreshold: 4, FailureThreshold: 5,
						}},
						MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{
							{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"y": "n"}, Annotations: map[string]string{"a": "line\nline", "b": ""},
								LabelsFrom:      []v1alpha1.ValueSource{{Key: "n", JSONPath: "['y']", AllowedValues: []string{"1e3", "no"}}, {Key: "m"}},
								AnnotationsFrom: []v1alpha1.ValueSource{{Key: "o"}},
							},
							{State: v1alpha1.ProbeFailed, Annotations: map[string]string{"time": "12:30:45", "date": "2026-01-01"}},
						},
						PodConditionType: "off",
					}},
				},
			}
			content, err := template.YAML(&want)
			expect.NoError(t, err)
			var got v1alpha1.PodProbeMarker
			if err := yaml.UnmarshalStrict(content, &got); err != nil {
				t.Fatalf("%v in\n%s", err, content)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("marker (-want +got):\n%s\n%s", diff, content)
			}
		})
	}
}

func TestHandlers(t *testing.T) {
	for name, test := range map[string]struct {
		parse func(string) (corev1.ProbeHandler, error)
		text  string
		want  corev1.ProbeHandler
		err   string
	}{
		"exec": {
			parse: template.Exec, text: "cat /tmp/job", want: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"cat", "/tmp/job"}}},
		},
		"exec with a shell": {
			parse: template.Exec, text: "[ ! -e $X ]", want: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "[ ! -e $X ]"}}},
		},
		"exec, blank": {parse: template.Exec, text: " ", err: "must be a command, such as 'cat /tmp/job'"},
		"http": {
			parse: template.HTTP, text: "/a:b:80", want: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/a:b", Port: intstr.FromInt32(80)}},
		},
		"http, named port": {
			parse: template.HTTP, text: ":http", want: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}},
		},
		"http, port": {
			parse: template.HTTP, text: "80", want: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}},
		},
		"http, URL": {
			parse: template.HTTP, text: "http://x:80", err: `"http://x:80" is invalid: must be PATH:PORT, such as /ready:8080 or /ready:http`,
		},
		"http, no port":   {parse: template.HTTP, text: "/ready", err: `"/ready" is invalid: must be PATH:PORT, such as /ready:8080 or /ready:http`},
		"tcp":             {parse: template.TCP, text: "6379", want: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(6379)}}},
		"tcp, large port": {parse: template.TCP, text: "65536", err: `"65536" is invalid: must be a port number from 1 to 65535 or the name of a port`},
		"grpc":            {parse: template.GRPC, text: "9090", want: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9090}}},
		"grpc, service":   {parse: template.GRPC, text: "9090/a.b/c", want: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9090, Service: new("a.b/c")}}},
		"grpc, named port": {
			parse: template.GRPC, text: "http", err: `"http" is invalid: must be PORT or PORT/SERVICE with a port number, such as 9090/intake`,
		},
		"grpc, no service": {parse: template.GRPC, text: "1/", err: `"1/" is invalid: must be PORT or PORT/SERVICE with a port number, such as 9090/intake`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.parse(test.text)
			if fmt.Sprint(err) != test.err && (err != nil || test.err != "") {
				t.Errorf("error %v, want %q", err, test.err)
			}
			expect.Equal(t, "handler", test.want, got)
		})
	}
}

func TestMark(t *testing.T) {
	for text, want := range map[string]string{
		"busy":            "busy true <nil> <nil>",
		"busy=yes":        "busy yes <nil> <nil>",
		"role=a,b":        "role a b <nil>",
		"x=a,":            "x a  <nil>",
		"x=":              "x  <nil> <nil>",
		"game.io/x=1,2,3": "game.io/x 1 2,3 <nil>",
		"=a":              `  <nil> "=a" is invalid: must be KEY, KEY=VALUE or KEY=VALUE,VALUE, for the states Succeeded and Failed`,
	} {
		key, succeeded, failed, err := template.Mark(text)
		second := "<nil>"
		if failed != nil {
			second = *failed
		}
		expect.Equal(t, fmt.Sprintf("%q", text), want, fmt.Sprint(key, " ", succeeded, " ", second, " ", err))
	}
}

func TestSource(t *testing.T) {
	for text, want := range map[string]string{
		"map":                 "{map  []} <nil>",
		"game.io/map=.map":    "{game.io/map .map []} <nil>",
		"map=.a[0].b,dust,":   "{map .a[0].b [dust ]} <nil>",
		"role=,primary,other": "{role  [primary other]} <nil>",
		"=.map":               `{  []} "=.map" is invalid: must be KEY, KEY=PATH or KEY=PATH,VALUE,..., such as game.io/map=.map,dust,mill`,
	} {
		source, err := template.Source(text)
		expect.Equal(t, fmt.Sprintf("%q: got", text), want, fmt.Sprint(source, " ", err))
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"app=worker":                             "worker",
		"tier=back":                              "back",
		"app.kubernetes.io/name=x,tier=y":        "x",
		"a=x,b=y":                                "",
		"app=Upper_case":                         "",
		"app in (a, b)":                          "",
		"app=worker,app.kubernetes.io/name=name": "worker",
	} {
		selector, err := template.Selector(text)
		expect.NoError(t, err)
		expect.Equal(t, fmt.Sprintf("%q: got", text), want, template.NameOf(selector))
	}
	for _, text := range []string{"", "a==b==c"} {
		if _, err := template.Selector(text); err == nil {
			t.Errorf("no error for the selector %q", text)
		}
	}
	for key, want := range map[string]string{"busy": "busy", "game.io/idle": "idle"} {
		expect.Equal(t, fmt.Sprintf("%q: got", key), want, template.ProbeOf(key))
	}
}
