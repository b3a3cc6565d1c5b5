// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// requests counts requests by their results. controller-runtime measures their duration.
type requests struct{ total *prometheus.CounterVec }

func newMetrics(registry prometheus.Registerer) *requests {
	r := &requests{total: promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "seamark_injector_pods_total",
		Help: "Admission requests for new pods, by result. A pod is refused if it has a container of its own with the name of a set's.",
	}, []string{"result"})}
	for _, result := range []Result{Injected, Unchanged, Refused, Failed} {
		r.total.WithLabelValues(string(result))
	}
	return r
}

func (r *requests) done(result Result) { r.total.WithLabelValues(string(result)).Inc() }
