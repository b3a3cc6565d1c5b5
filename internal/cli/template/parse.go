// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manifest/shell"
)

// Exec parses a command line. A line that needs a shell, such as for a variable or a pipe, runs in
// "sh -c".
func Exec(line string) (corev1.ProbeHandler, error) {
	if strings.TrimSpace(line) == "" {
		return corev1.ProbeHandler{}, errors.New("must be a command, such as 'cat /tmp/job'")
	}
	command, plain := shell.Split(line)
	if !plain {
		command = []string{"sh", "-c", line}
	}
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}}, nil
}

// HTTP parses PATH:PORT, or only the port. The default of the path is "/".
func HTTP(text string) (corev1.ProbeHandler, error) {
	path, port := "/", text
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		path, port = text[:i], text[i+1:]
	}
	if path == "" {
		path = "/"
	}
	parsed, err := parsePort(port)
	if err != nil || path[0] != '/' {
		return corev1.ProbeHandler{}, fmt.Errorf("%q is invalid: must be PATH:PORT, such as /ready:8080 or /ready:http", text)
	}
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: parsed}}, nil
}

// TCP parses a port number or the name of a port.
func TCP(text string) (corev1.ProbeHandler, error) {
	port, err := parsePort(text)
	if err != nil {
		return corev1.ProbeHandler{}, err
	}
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}, nil
}

// GRPC parses PORT or PORT/SERVICE. The port is a number.
func GRPC(text string) (corev1.ProbeHandler, error) {
	number, service, named := strings.Cut(text, "/")
	port, err := strconv.ParseInt(number, 10, 32)
	if err != nil || validation.IsValidPortNum(int(port)) != nil || named && service == "" {
		return corev1.ProbeHandler{}, fmt.Errorf("%q is invalid: must be PORT or PORT/SERVICE with a port number, such as 9090/intake", text)
	}
	action := &corev1.GRPCAction{Port: int32(port)}
	if named {
		action.Service = &service
	}
	return corev1.ProbeHandler{GRPC: action}, nil
}

func parsePort(text string) (intstr.IntOrString, error) {
	port := intstr.Parse(text)
	if port.Type == intstr.Int && validation.IsValidPortNum(port.IntValue()) == nil ||
		port.Type == intstr.String && validation.IsValidPortName(text) == nil {
		return port, nil
	}
	return port, fmt.Errorf("%q is invalid: must be a port number from 1 to 65535 or the name of a port", text)
}

// Selector parses the selector of pods, as in the -l flag of kubectl.
func Selector(text string) (metav1.LabelSelector, error) {
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return metav1.LabelSelector{}, fmt.Errorf("%q is invalid: %w", text, err)
	}
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return metav1.LabelSelector{}, errors.New("must select pods by at least one label, such as app=worker")
	}
	return *selector, nil
}

// Mark parses KEY, KEY=SUCCEEDED or KEY=SUCCEEDED,FAILED: the values of a label or annotation in the
// two states. KEY means KEY=true. Without a value for Failed, failed is nil, so that the key is
// removed in this state.
func Mark(text string) (key, succeeded string, failed *string, err error) {
	key, values, given := strings.Cut(text, "=")
	if key == "" {
		return "", "", nil, fmt.Errorf("%q is invalid: must be KEY, KEY=VALUE or KEY=VALUE,VALUE, for the states Succeeded and Failed", text)
	}
	if !given {
		return key, "true", nil, nil
	}
	succeeded, second, both := strings.Cut(values, ",")
	if both {
		failed = &second
	}
	return key, succeeded, failed, nil
}

// Source parses KEY, KEY=PATH or KEY=PATH,VALUE,...: a label or annotation whose value is what the probe prints. Without a path, it
// is the first line. The values are the only ones that take effect.
func Source(text string) (v1alpha1.ValueSource, error) {
	key, rest, _ := strings.Cut(text, "=")
	if key == "" {
		return v1alpha1.ValueSource{}, fmt.Errorf("%q is invalid: must be KEY, KEY=PATH or KEY=PATH,VALUE,..., such as game.io/map=.map,dust,mill", text)
	}
	path, values, limited := strings.Cut(rest, ",")
	source := v1alpha1.ValueSource{Key: key, JSONPath: path}
	if limited {
		source.AllowedValues = strings.Split(values, ",")
	}
	return source, nil
}

// NameOf returns a name for a marker and a container that can be derived from the selector: the value
// of the label app, app.kubernetes.io/name or, if there is only one label, of this. It is empty if
// there is none.
func NameOf(selector metav1.LabelSelector) string {
	candidates := []string{selector.MatchLabels["app"], selector.MatchLabels["app.kubernetes.io/name"]}
	if len(selector.MatchLabels) == 1 {
		for _, value := range selector.MatchLabels {
			candidates = append(candidates, value)
		}
	}
	for _, name := range candidates {
		if name != "" && len(validation.IsDNS1123Label(name)) == 0 {
			return name
		}
	}
	return ""
}

// ProbeOf returns a name for a probe from the key of a mark: the part after the prefix.
func ProbeOf(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }
