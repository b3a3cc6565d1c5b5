// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probing

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Parse returns the target of a planned probe, whose defaults and named ports are resolved.
// Network probes connect to podIP, IPv4 or IPv6; exec probes do not need it. The error names
// the invalid field and the allowed values.
func Parse(spec *corev1.Probe, podIP string) (Target, error) {
	if spec == nil {
		spec = &corev1.Probe{}
	}
	handler, err := HandlerOf(&spec.ProbeHandler)
	if err != nil {
		return Target{}, err
	}
	if spec.TimeoutSeconds < 1 {
		return Target{}, fmt.Errorf("timeoutSeconds: %d is invalid: must be 1 or more", spec.TimeoutSeconds)
	}
	target := Target{Handler: handler, Timeout: time.Duration(spec.TimeoutSeconds) * time.Second}
	switch handler {
	case HandlerExec:
		target.Exec, err = parseExec(spec.Exec)
	case HandlerHTTP:
		target.HTTP, err = parseHTTP(spec.HTTPGet, podIP)
	case HandlerTCP:
		target.TCP, err = parseTCP(spec.TCPSocket, podIP)
	case HandlerGRPC:
		target.GRPC, err = parseGRPC(spec.GRPC, podIP)
	default:
		err = fmt.Errorf("probe: handler %q is not supported", handler)
	}
	if err != nil {
		return Target{}, err
	}
	return target, nil
}

func parseExec(action *corev1.ExecAction) (*Exec, error) {
	if len(action.Command) == 0 {
		return nil, errors.New("exec.command: required value: must be a program and its arguments")
	}
	return &Exec{Command: action.Command}, nil
}

func parseHTTP(action *corev1.HTTPGetAction, podIP string) (*HTTP, error) {
	address, err := addressOf("httpGet", action.Host, podIP, action.Port)
	if err != nil {
		return nil, err
	}
	scheme := "http"
	switch action.Scheme {
	case corev1.URISchemeHTTP, "":
	case corev1.URISchemeHTTPS:
		scheme = "https"
	default:
		return nil, fmt.Errorf("httpGet.scheme: %q is invalid: must be HTTP or HTTPS", action.Scheme)
	}
	target, err := urlOf(scheme, address, action.Path)
	if err != nil {
		return nil, err
	}
	http2, err := isHTTP2(action)
	if err != nil {
		return nil, err
	}
	header := make(http.Header, len(action.HTTPHeaders))
	for _, h := range action.HTTPHeaders {
		header.Add(h.Name, h.Value)
	}
	return &HTTP{URL: target, Header: header, Host: header.Get("Host"), HTTP2: http2}, nil
}

// isHTTP2 reports whether the protocol is HTTP/2, which Kubernetes defines for the scheme HTTP only.
func isHTTP2(action *corev1.HTTPGetAction) (bool, error) {
	switch protocol := laterField(action, "Protocol"); {
	case protocol == "" || protocol == "HTTP1":
		return false, nil
	case protocol != "HTTP2":
		return false, fmt.Errorf("httpGet.protocol: %q is invalid: must be HTTP1 or HTTP2", protocol)
	case action.Scheme == corev1.URISchemeHTTPS:
		return false, fmt.Errorf("httpGet.protocol: %q is invalid: the scheme must be HTTP", protocol)
	default:
		return true, nil
	}
}

func isTLS(action *corev1.GRPCAction) (bool, error) {
	switch mode := laterField(action, "Mode"); mode {
	case "", "Plaintext":
		return false, nil
	case "TLS":
		return true, nil
	default:
		return false, fmt.Errorf("grpc.mode: %q is invalid: must be Plaintext or TLS", mode)
	}
}

// laterField returns a text field of a handler; empty means that it is not set. The field exists
// since Kubernetes 1.37, but test/parity builds this package with the types of an older kubelet.
func laterField(action any, name string) string {
	field := reflect.Indirect(reflect.Indirect(reflect.ValueOf(action)).FieldByName(name))
	if !field.IsValid() {
		return ""
	}
	return field.String()
}

// urlOf returns the URL of an address and a path with an optional query. It treats a path
// that cannot be parsed as literal text, as the kubelet does. It parses the result again,
// because the text is what the request contains.
func urlOf(scheme, address, path string) (*url.URL, error) {
	parsed, err := url.Parse(path)
	if err != nil {
		parsed = &url.URL{Path: path}
	}
	parsed.Scheme, parsed.Host = scheme, address
	out, err := url.Parse(parsed.String())
	if err != nil || out.Host != address {
		return nil, fmt.Errorf("httpGet.path: %q is invalid: must begin with /", path)
	}
	return out, nil
}

func parseTCP(action *corev1.TCPSocketAction, podIP string) (*TCP, error) {
	address, err := addressOf("tcpSocket", action.Host, podIP, action.Port)
	if err != nil {
		return nil, err
	}
	return &TCP{Address: address}, nil
}

func parseGRPC(action *corev1.GRPCAction, podIP string) (*GRPC, error) {
	address, err := addressOf("grpc", "", podIP, intstr.FromInt32(action.Port))
	if err != nil {
		return nil, err
	}
	out := &GRPC{Address: address}
	if action.Service != nil {
		out.Service = *action.Service
	}
	if out.TLS, err = isTLS(action); err != nil {
		return nil, err
	}
	return out, nil
}

// addressOf returns the pod's address with the port of a handler. It rejects a host: a probe
// must connect only to its own pod, because it runs in the node's network.
func addressOf(handler, host, podIP string, port intstr.IntOrString) (string, error) {
	if host != "" {
		return "", fmt.Errorf("%s.host: %q is invalid: must be empty, because a probe connects to its own pod", handler, host)
	}
	ip, err := netip.ParseAddr(podIP)
	if err != nil || ip.Zone() != "" {
		return "", fmt.Errorf("pod IP: %q is invalid: must be an IPv4 or IPv6 address", podIP)
	}
	if port.Type != intstr.Int || port.IntVal < 1 || port.IntVal > 65535 {
		return "", fmt.Errorf("%s.port: %q is invalid: must be a number between 1 and 65535", handler, port.String())
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(int(port.IntVal))), nil
}
