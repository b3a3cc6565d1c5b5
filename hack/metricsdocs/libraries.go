// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// processMetrics are the metrics of the Go runtime and the process that help to operate Seamark.
func processMetrics() []Metric {
	return []Metric{
		{Name: "go_goroutines", Type: "gauge", Help: "Number of goroutines that currently exist."},
		{Name: "process_cpu_seconds_total", Type: "counter", Help: "Total user and system CPU time spent in seconds."},
		{Name: "process_resident_memory_bytes", Type: "gauge", Help: "Resident memory size in bytes."},
	}
}

// libraryMetrics are the metrics of the manager's libraries that help to operate Seamark.
func libraryMetrics() []Metric {
	controller := []Label{{Name: "controller"}}
	results := Label{Name: "result", Values: []string{"error", "requeue", "requeue_after", "success"}}
	queue := []Label{{Name: "controller"}, {Name: "name"}}
	return []Metric{
		{Name: "controller_runtime_active_workers", Type: "gauge", Labels: controller,
			Help: "Number of busy workers of a controller."},
		{Name: "controller_runtime_max_concurrent_reconciles", Type: "gauge", Labels: controller,
			Help: "Number of workers of a controller."},
		{Name: "controller_runtime_reconcile_errors_total", Type: "counter", Labels: controller,
			Help: "Reconciliations that returned an error."},
		{Name: "controller_runtime_reconcile_panics_total", Type: "counter", Labels: controller,
			Help: "Reconciliations that panicked."},
		{Name: "controller_runtime_reconcile_time_seconds", Type: "histogram", Labels: controller,
			Help: "Duration of a reconciliation.", Buckets: []float64{0.005, 60}},
		{Name: "controller_runtime_reconcile_total", Type: "counter", Labels: append(controller, results),
			Help: "Reconciliations by result."},
		{Name: "leader_election_master_status", Type: "gauge", Labels: []Label{{Name: "name"}},
			Help: "1 if the manager leads, 0 if it is on standby. `name` is the name of the Lease."},
		{Name: "rest_client_requests_total", Type: "counter",
			Labels: []Label{{Name: "code"}, {Name: "host"}, {Name: "method"}},
			Help:   "Requests to the API server by status code, host and method."},
		{Name: "workqueue_depth", Type: "gauge", Labels: append(queue, Label{Name: "priority"}),
			Help: "Number of queued items of a controller."},
		{Name: "workqueue_queue_duration_seconds", Type: "histogram", Labels: queue,
			Help: "Time that an item is queued before a worker takes it.", Buckets: []float64{1e-08, 1000}},
		{Name: "workqueue_retries_total", Type: "counter", Labels: queue,
			Help: "Items that were queued with a delay: after an error, or by request of the controller."},
	}
}
