// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts requests by their results. controller-runtime measures their duration.
type Metrics struct{ total *prometheus.CounterVec }

// NewMetrics creates the metrics in registry, with zero for each result. It panics if registry already has metrics
// of these names.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	r := &Metrics{total: promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "seamark_injector_pods_total",
		Help: "Admission requests for new pods, by result. A pod is refused if it has a container of its own with the name of a set's.",
	}, []string{"result"})}
	for _, result := range []Result{Injected, Unchanged, Refused, Failed} {
		r.total.WithLabelValues(string(result))
	}
	return r
}

// Done counts a request with the result.
func (r *Metrics) Done(result Result) { r.total.WithLabelValues(string(result)).Inc() }
