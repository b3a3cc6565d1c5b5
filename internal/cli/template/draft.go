// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package draft writes the first version of a PodProbeMarker with one probe: YAML in which comments
// explain each field and its default.
package draft

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	yaml11 "sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Marker is what a marker with one probe contains.
type Marker struct {
	// Name and Namespace are those of the marker. The namespace may be empty.
	Name, Namespace string
	// Selector selects the pods.
	Selector metav1.LabelSelector
	// Probe is the name of the probe, and Container the name of the container that it probes.
	Probe, Container string
	// Spec is the probe. Its handler is set. All times and thresholds are written, so none should be
	// zero except for the initial delay.
	Spec corev1.Probe
	// Succeeded and Failed are the labels and annotations in these states.
	Succeeded, Failed Marks
	// Condition is the type of the condition, or empty.
	Condition string
}

// Marks are the labels and annotations of a pod in one state.
type Marks struct {
	Labels, Annotations map[string]string
}

func (m Marks) empty() bool { return len(m.Labels)+len(m.Annotations) == 0 }

// YAML returns the manifest.
func (m Marker) YAML() ([]byte, error) {
	metadata := mapping(entry{key: "name", value: scalar(m.Name)})
	if m.Namespace != "" {
		add(metadata, entry{key: "namespace", value: scalar(m.Namespace)})
	}
	spec := mapping(
		entry{"selector", selector(m.Selector), "The pods to probe, in the namespace of the marker. The selector cannot be changed later."},
		entry{"probes", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{m.probe()}},
			"The probes that run in each pod. The name is unique in the marker; events and messages contain it."},
	)
	root := mapping(
		entry{"apiVersion", scalar(v1alpha1.GroupVersion().String()),
			"Runs a probe in a container of the selected pods, and marks each pod with the result.\n" +
				"\"kubectl explain podprobemarker.spec\" describes all fields, \"seamark lint\" checks the file."},
		entry{key: "kind", value: scalar("PodProbeMarker")},
		entry{key: "metadata", value: metadata},
		entry{key: "spec", value: spec},
	)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("write marker: %w", err)
	}
	return out.Bytes(), nil
}

func (m Marker) probe() *yaml.Node {
	probe := mapping(
		entry{key: "name", value: scalar(m.Probe)},
		entry{"containerName", scalar(m.Container), "The container to probe. Pods without it are not probed."},
		entry{key: "probe", value: m.spec()},
	)
	policies := &yaml.Node{Kind: yaml.SequenceNode}
	for _, policy := range []struct {
		state v1alpha1.ProbeState
		marks Marks
	}{{v1alpha1.ProbeSucceeded, m.Succeeded}, {v1alpha1.ProbeFailed, m.Failed}} {
		if policy.marks.empty() {
			continue
		}
		node := mapping(entry{key: "state", value: scalar(string(policy.state))})
		if len(policy.marks.Labels) > 0 {
			add(node, entry{key: "labels", value: texts(policy.marks.Labels)})
		}
		if len(policy.marks.Annotations) > 0 {
			add(node, entry{key: "annotations", value: texts(policy.marks.Annotations)})
		}
		policies.Content = append(policies.Content, node)
	}
	if len(policies.Content) > 0 {
		add(probe, entry{"markerPolicy", policies,
			"The labels and annotations of the pod in each state. In a state without an entry, all of them\n" +
				"are removed."})
	}
	if m.Condition != "" {
		add(probe, entry{"podConditionType", scalar(m.Condition),
			"The condition of the pod: True in the state Succeeded, False in the state Failed. Its message\n" +
				"is the output of the probe."})
	}
	return probe
}

// spec returns the handler, the times and the thresholds.
func (m Marker) spec() *yaml.Node {
	return mapping(
		handler(&m.Spec.ProbeHandler),
		entry{"initialDelaySeconds", number(m.Spec.InitialDelaySeconds), "Seconds from the start of the container to the first run. The default is 0."},
		entry{"periodSeconds", number(m.Spec.PeriodSeconds), "Seconds from the start of a run to the start of the next one. The default is 10."},
		entry{"timeoutSeconds", number(m.Spec.TimeoutSeconds), "A run that takes longer fails, in seconds, at most 300. The default is 1."},
		entry{"successThreshold", number(m.Spec.SuccessThreshold), "Successes in a row until the state is Succeeded. The default is 1."},
		entry{"failureThreshold", number(m.Spec.FailureThreshold), "Failures in a row until the state is Failed. The default is 3."},
	)
}

func handler(h *corev1.ProbeHandler) entry {
	switch {
	case h.HTTPGet != nil:
		return entry{"httpGet", mapping(entry{key: "path", value: scalar(h.HTTPGet.Path)}, entry{key: "port", value: port(h.HTTPGet.Port)}),
			"Requests the path from the pod. A status from 200 to 399 is a success. The port is a number or\n" +
				"the name of a port of the container."}
	case h.TCPSocket != nil:
		return entry{"tcpSocket", mapping(entry{key: "port", value: port(h.TCPSocket.Port)}),
			"Connects to the pod. A connection is a success. The port is a number or the name of a port of\nthe container."}
	case h.GRPC != nil:
		action := mapping(entry{key: "port", value: number(h.GRPC.Port)})
		if h.GRPC.Service != nil {
			add(action, entry{key: "service", value: scalar(*h.GRPC.Service)})
		}
		return entry{"grpc", action, "Calls grpc.health.v1.Health/Check. The answer SERVING is a success."}
	default:
		command := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		if h.Exec != nil {
			for _, word := range h.Exec.Command {
				command.Content = append(command.Content, scalar(word))
			}
		}
		return entry{"exec", mapping(entry{key: "command", value: command}),
			"Runs a program and its arguments in the container, without a shell. Exit code 0 is a success."}
	}
}

func selector(s metav1.LabelSelector) *yaml.Node {
	node := mapping()
	if len(s.MatchLabels) > 0 {
		add(node, entry{key: "matchLabels", value: texts(s.MatchLabels)})
	}
	expressions := &yaml.Node{Kind: yaml.SequenceNode}
	for _, r := range s.MatchExpressions {
		expression := mapping(entry{key: "key", value: scalar(r.Key)}, entry{key: "operator", value: scalar(string(r.Operator))})
		if len(r.Values) > 0 {
			values := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
			for _, value := range r.Values {
				values.Content = append(values.Content, scalar(value))
			}
			add(expression, entry{key: "values", value: values})
		}
		expressions.Content = append(expressions.Content, expression)
	}
	if len(expressions.Content) > 0 {
		add(node, entry{key: "matchExpressions", value: expressions})
	}
	return node
}

// entry is a field of a mapping. The comment is above it.
type entry struct {
	key     string
	value   *yaml.Node
	comment string
}

func mapping(entries ...entry) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, e := range entries {
		add(node, e)
	}
	return node
}

func add(node *yaml.Node, e entry) {
	key := scalar(e.key)
	key.HeadComment = e.comment
	node.Content = append(node.Content, key, e.value)
}

// scalar returns a text, in quotes if the API server would read something else without them: it reads
// YAML 1.1, where yes is a boolean and 12:30 a number.
func scalar(text string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(text)
	var read any
	if err := yaml11.Unmarshal([]byte(text), &read); node.Style == 0 && (err != nil || read != any(text)) {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

func number(n int32) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(int(n))}
}

func port(p intstr.IntOrString) *yaml.Node {
	if p.Type == intstr.Int {
		return number(p.IntVal)
	}
	return scalar(p.StrVal)
}

func texts(values map[string]string) *yaml.Node {
	node := mapping()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		add(node, entry{key: key, value: scalar(values[key])})
	}
	return node
}
