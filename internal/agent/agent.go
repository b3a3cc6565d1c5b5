// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent assembles the node side of Seamark. It watches the NodePodProbe and the ProbePlans of
// its node, runs the plan in them with a worker, reports the states in ProbeReports of a few pods each, and
// reports transitions and errors of probes as events of the pods.
//
// In the API it may only list and watch nodepodprobes, get probeplans, patch
// nodepodprobes/status, list, create, update, patch and delete probereports, and create and patch events. It has no access
// to pods or nodes.
package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/internal/agent/cri"
	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/exec"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/pace"
	"github.com/seamark-dev/seamark/internal/probing/probers"
	"github.com/seamark-dev/seamark/internal/probing/slots"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/internal/program/health"
	"github.com/seamark-dev/seamark/internal/program/logging"
	"github.com/seamark-dev/seamark/internal/program/profiles"
	"github.com/seamark-dev/seamark/internal/program/serving"
)

// Options are the dependencies and settings of an agent. Fields are required unless their
// comment says otherwise.
type Options struct {
	// NodeName is the name of the Node and of its NodePodProbe.
	NodeName string
	// Config is the configuration of the API client. Its rate limit is ignored.
	Config *rest.Config
	// Runtime is the node's container runtime. The agent does not close it. It is required unless
	// Node is set.
	Runtime *cri.Client
	// Node replaces the runtime and what probes its containers, in simulations. It is optional.
	Node Node
	// ExecConcurrency is how many exec probes run at a time, at least 1.
	ExecConcurrency int
	// ProbeRate is how many TCP probes may run per second, as pace.Cost counts others. It is 0 if there
	// is no limit.
	ProbeRate int
	// ReportInterval is the minimum time between the starts of two batches of slices of the
	// report. It is greater than 0.
	ReportInterval time.Duration
	// Version is the version in the user agent of network probes, kube-probe/<version>.
	Version string
	// Metrics counts what the agent does.
	Metrics *agentmetrics.Metrics
	// Gatherer is served at /metrics. It is required if Listener is set.
	Gatherer prometheus.Gatherer
	// Listener serves /healthz, /readyz and /metrics. It is optional. The agent closes it.
	Listener net.Listener
	// Profiles serves net/http/pprof at /debug/pprof/. It is optional. Profiles can contain
	// confidential data, so it should listen on loopback. The agent closes it.
	Profiles net.Listener
	// Planned receives how many runs of probes per second each new plan has. It is optional.
	Planned func(runsPerSecond float64)
	// Log is the agent's logger. Its values include the node.
	Log logr.Logger
}

// Node is a simulated node: its containers, and what probes them.
type Node interface {
	probing.Prober
	// Track reports the containers of the node until ctx ends.
	Track(ctx context.Context, callbacks cri.Callbacks)
	// Jitter returns a random time that is shorter than the given one.
	Jitter(longest time.Duration) time.Duration
}

// Agent is the node side of Seamark.
type Agent struct {
	options  Options
	client   *nodeClient
	sink     eventSink
	watched  *watched
	follower *follower
	reporter *reporter
	status   *statusKeeper
	worker   *worker.Worker
	commands *exec.Prober
	tracker  *cri.Tracker
	// track is the tracker's Run, or that of a simulated node.
	track   func(ctx context.Context)
	running runningContainers

	// synced reports whether all containers of the node are known.
	synced atomic.Bool
}

// New assembles an agent. It returns an error if the configuration of the API client is invalid.
func New(options Options) (*Agent, error) {
	client, err := newNodeClient(options.Config, options.NodeName)
	if err != nil {
		return nil, err
	}
	sink, err := newEventClient(options.Config)
	if err != nil {
		return nil, err
	}
	a := &Agent{options: options, client: client, sink: sink}
	log := options.Log.WithName("report")
	a.status = newStatusKeeper(client, options.ReportInterval, options.Metrics, log)
	a.reporter = newReporter(options.NodeName, client, a.status, a.running.pods, options.ReportInterval, options.Metrics, log)
	a.watched = newWatched(a.reporter.Relisted)
	a.commands = exec.New(options.Runtime, options.ExecConcurrency, options.Metrics)
	network := slots.New(probers.NetworkSlots, options.Metrics.WaitedForNetwork)
	var prober probing.Prober = probers.New(a.commands, network, options.Version)
	if options.Node != nil {
		prober = options.Node
	}
	a.worker = worker.New(worker.Options{
		Prober:  prober,
		Sink:    a.reporter,
		Observe: a.observe,
		Phase:   worker.PhaseOf,
		Limits:  pace.LimitsOf(options.ProbeRate),
		Now:     time.Now,
	})
	a.follower = &follower{
		watched: a.watched, runner: a.worker, report: a.reporter,
		listed: a.reporter.listed, planned: options.Planned, log: options.Log.WithName("plan"),
	}
	wanted := func() bool { return a.follower.probes.Load() > 0 }
	a.tracker = cri.NewTracker(options.Runtime, wanted, a.callbacks(), options.Log.WithName("runtime"))
	a.track = a.tracker.Run
	if options.Node != nil {
		a.track = func(ctx context.Context) { options.Node.Track(ctx, a.callbacks()) }
		a.reporter.jitter = options.Node.Jitter
	}
	options.Metrics.Watch(options.NodeName, options.Version, agentmetrics.Now{
		Planned: a.follower.probes.Load, Generation: a.follower.inForce.Load, Queued: a.commands.Queued, NetworkQueued: network.Queued, Unended: a.commands.Unended,
		Errors: a.reporter.errors, Slices: a.reporter.slices,
		Undescribed: a.tracker.Undescribed,
	})
	return a, nil
}

// callbacks passes the changes of containers to the worker.
func (a *Agent) callbacks() cri.Callbacks {
	return cri.Callbacks{
		OnChange: func(c cri.Instance) {
			a.logContainer(c)
			a.running.set(c.ContainerKey, c.Running)
			if c.Running {
				a.reporter.ContainerRuns()
			}
			a.worker.ContainerChanged(c.ContainerKey, thresholds.ContainerRun{
				ID: c.ID, Running: c.Running, StartedAt: c.StartedAt, Reason: c.Reason, Pod: c.Pod,
			})
		},
		OnGone: func(key identity.ContainerKey) {
			a.running.set(key, false)
			a.worker.ContainerGone(key)
		},
		OnUnknown: a.worker.ContainerUnknown,
		OnSynced: func() {
			a.synced.Store(true)
			a.worker.ContainersSynced()
		},
		OnStale: a.worker.ContainersStale,
	}
}

// logContainer logs a change of a container of a planned pod.
func (a *Agent) logContainer(c cri.Instance) {
	log := a.options.Log.V(logging.Decisions)
	if !log.Enabled() {
		return
	}
	if pod, planned := a.reporter.podName(c.PodUID); planned {
		log.Info("Container changed", "pod", pod.String(), "container", c.Name, "containerID", c.ID, "running", c.Running)
	}
}

// observe logs and counts a run.
func (a *Agent) observe(run worker.Run) {
	a.logRun(run)
	handler := run.Handler
	if run.Startup {
		handler = agentmetrics.HandlerStartup
	}
	a.options.Metrics.Probed(handler, resultOf(run), run.Duration)
	if run.RateLimited != "" {
		a.options.Metrics.RateLimited(run.RateLimited)
	}
}

func (a *Agent) logRun(run worker.Run) {
	log := a.options.Log.V(logging.Runs)
	if run.Err != nil {
		log = a.options.Log.V(logging.Decisions)
	}
	if !log.Enabled() {
		return
	}
	log = log.WithValues("pod", run.Pod.String(), "probe", run.Key.String(), "container", run.Key.Name)
	if run.Startup {
		log = log.WithValues("startup", true)
	}
	if run.Err != nil {
		log.Info("Probe returned no result", "reason", run.Err.Error())
		return
	}
	log.Info("Ran probe", "success", run.Outcome.Success, "streak", run.Streak, "message", run.Outcome.Message, "took", run.Duration)
}

// resultOf returns the result of a run as a label value.
func resultOf(run worker.Run) agentmetrics.Result {
	switch {
	case run.Err != nil && probing.TimedOut(run.Err), run.Outcome.TimedOut:
		return agentmetrics.ResultTimeout
	case run.Err != nil:
		return agentmetrics.ResultError
	case run.Outcome.Success:
		return agentmetrics.ResultSuccess
	default:
		return agentmetrics.ResultFailure
	}
}

// Run runs and reports probes until ctx ends. Then it stops all probes, writes the last
// report, and returns within five seconds. It returns an error if a component fails
// permanently.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(logr.NewContext(ctx, a.options.Log))
	defer cancel(nil)
	defer a.commands.Close()

	// Reports and events continue after ctx ends, so that the last states are written.
	last, stop := context.WithCancel(context.WithoutCancel(ctx))
	emitter := newEvents(a.sink, a.options.NodeName, a.options.Metrics, a.options.Log.WithName("events"))
	var parts, reports, emitting sync.WaitGroup
	emitting.Go(func() { emitter.run(last) })
	defer emitting.Wait()
	defer stop()
	reporting, stopReporting := context.WithCancel(last)
	defer stopReporting()
	reports.Go(func() { a.reporter.run(reporting, emitter) })
	reports.Go(func() { a.status.run(reporting) })

	watch := a.client.reflector(objectStore{a.watched}, a.options.Log.WithName("watch"))
	parts.Go(func() { watch.RunWithContext(ctx) })
	plans := &planReader{watched: a.watched, client: a.client, log: a.options.Log.WithName("watch")}
	parts.Go(func() { plans.run(ctx) })
	parts.Go(func() { a.follower.run(ctx) })
	parts.Go(func() { a.worker.Run(ctx) })
	parts.Go(func() { a.track(ctx) })
	if a.options.Listener != nil {
		parts.Go(func() {
			cancelOn(cancel, serving.Serve(ctx, a.options.Listener, handler(a.options.Gatherer, a.checks()), serving.Options{}))
		})
	}
	if a.options.Profiles != nil {
		parts.Go(func() {
			cancelOn(cancel, serving.Serve(ctx, a.options.Profiles, profiles.Handler(), serving.Options{}))
		})
	}
	parts.Wait()
	stopReporting()
	reports.Wait()
	a.flush(last, emitter)

	drain, done := context.WithTimeout(last, drainTimeout)
	defer done()
	emitter.Drain(drain)
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// flush writes the last states.
func (a *Agent) flush(ctx context.Context, emitter eventEmitter) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	a.reporter.flush(ctx, emitter)
	a.status.flush(ctx)
}

// checks returns the conditions of readiness: the plan is in force, which requires the states
// that were reported before, the containers are known and the runtime is connected.
func (a *Agent) checks() []health.Check {
	const reason = "not ready"
	return []health.Check{
		health.Until("plan", reason, a.follower.synced.Load),
		health.Until("containers", reason, a.synced.Load),
		health.Until("runtime", reason, a.options.Runtime.Connected),
	}
}

// cancelOn stops all components if there is an error.
func cancelOn(cancel context.CancelCauseFunc, err error) {
	if err != nil {
		cancel(err)
	}
}

// handler serves /healthz, /readyz and /metrics.
func handler(gatherer prometheus.Gatherer, checks []health.Check) http.Handler {
	mux := health.Handler(checks...)
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	return mux
}

// runningContainers are the containers of the node that run. It is safe for concurrent use.
type runningContainers struct {
	mu      sync.Mutex
	running map[identity.ContainerKey]bool
}

// set records whether a container runs.
func (r *runningContainers) set(key identity.ContainerKey, runs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		r.running = map[identity.ContainerKey]bool{}
	}
	if runs {
		r.running[key] = true
	} else {
		delete(r.running, key)
	}
}

// pods returns the UIDs of the pods with a running container.
func (r *runningContainers) pods() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	pods := make(map[string]bool, len(r.running))
	for key := range r.running {
		pods[string(key.PodUID)] = true
	}
	return pods
}
