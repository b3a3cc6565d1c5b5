// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probing_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/probers"
	"github.com/seamark-dev/seamark/internal/probing/slots"
)

func ExampleParse() {
	spec := &corev1.Probe{TimeoutSeconds: 1}
	spec.HTTPGet = &corev1.HTTPGetAction{Path: "/healthz?full", Port: intstr.FromInt32(8080), Scheme: corev1.URISchemeHTTP}
	target, err := probing.Parse(spec, "10.0.0.7")
	fmt.Println(target.Handler, target.HTTP.URL, target.Timeout, err)

	spec.TimeoutSeconds = 0
	_, err = probing.Parse(spec, "10.0.0.7")
	fmt.Println(err)
	// Output:
	// httpGet http://10.0.0.7:8080/healthz?full 1s <nil>
	// timeoutSeconds: 0 is invalid: must be 1 or more
}

func ExampleSet_Probe() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	address := server.Listener.Addr().(*net.TCPAddr)
	port := intstr.FromInt(address.Port)

	set := probers.New(nil, slots.New(probers.NetworkSlots, nil), "1.36")
	for _, handler := range []corev1.ProbeHandler{
		{TCPSocket: &corev1.TCPSocketAction{Port: port}},
		{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: port, Scheme: corev1.URISchemeHTTP}},
	} {
		target, err := probing.Parse(&corev1.Probe{TimeoutSeconds: 1, ProbeHandler: handler}, address.IP.String())
		if err != nil {
			fmt.Println(err)
			continue
		}
		outcome, err := set.Probe(context.Background(), target)
		fmt.Printf("%s: %t %q %v\n", target.Handler, outcome.Success, outcome.Message, err)
	}
	// Output:
	// tcpSocket: true "" <nil>
	// httpGet: false "HTTP probe failed with statuscode: 404" <nil>
}
