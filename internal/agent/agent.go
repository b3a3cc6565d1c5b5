// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent assembles the node side of Seamark: it follows the plan in the one
// NodePodProbe of its node, has the worker run it, and reports the states in the object's
// status and their changes in events on the pods.
//
// Of the API server it needs to get, list and watch nodepodprobes, to patch
// nodepodprobes/status, and to create and patch events; nothing else, and nothing of pods
// or nodes.
package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/internal/agent/cri"
	"github.com/seamark-dev/seamark/internal/logging"
	agentmetrics "github.com/seamark-dev/seamark/internal/metrics/agent"
	"github.com/seamark-dev/seamark/internal/probe"
	"github.com/seamark-dev/seamark/internal/probe/exec"
	"github.com/seamark-dev/seamark/internal/probe/probers"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/streak"
	"github.com/seamark-dev/seamark/internal/worker"
)

// Options are what an agent needs. Fields are required unless they say otherwise.
type Options struct {
	// NodeName is the name of the Node, and of the NodePodProbe that is followed.
	NodeName string
	// Config is how the API server is reached. Its rate limit is not used.
	Config *rest.Config
	// Runtime is the node's container runtime. The agent does not close it.
	Runtime *cri.Client
	// ExecConcurrency is how many exec probes run at a time, at least 1.
	ExecConcurrency int
	// ReportInterval is the least time between the starts of two writes of the report,
	// more than 0.
	ReportInterval time.Duration
	// Version is what network probes name in their user agent, kube-probe/<version>.
	Version string
	// Metrics counts what the agent does.
	Metrics *agentmetrics.Metrics
	// Gatherer is served at /metrics. It is needed with Listener.
	Gatherer prometheus.Gatherer
	// Listener serves /healthz, /readyz and /metrics; nil serves none. The agent closes it.
	Listener net.Listener
	// Profiles serves those of net/http/pprof, at /debug/pprof/; nil serves none. They tell
	// much: it is to listen on loopback. The agent closes it.
	Profiles net.Listener
	// Rand returns a number in [0,1), by which the first runs after the start are spread.
	Rand func() float64
	// Log takes what the agent logs. Its lines are to name the node already.
	Log logr.Logger
}

// validate tells which field is wrong, and what is allowed.
func (o *Options) validate() error {
	switch {
	case o.NodeName == "":
		return errors.New("node name: empty, want the name of this Node")
	case o.Config == nil, o.Runtime == nil, o.Metrics == nil, o.Rand == nil:
		return errors.New("agent options: Config, Runtime, Metrics and Rand are required")
	case o.ExecConcurrency < 1:
		return fmt.Errorf("exec concurrency: %d, want at least 1", o.ExecConcurrency)
	case o.ReportInterval <= 0:
		return fmt.Errorf("report interval: %s, want more than 0", o.ReportInterval)
	case o.Listener != nil && o.Gatherer == nil:
		return errors.New("agent options: a Listener needs a Gatherer")
	}
	return nil
}

// Agent is the node side of Seamark.
type Agent struct {
	options  Options
	client   *nodeClient
	sink     eventSink
	watched  *watched
	follower *follower
	reporter *reporter
	worker   *worker.Worker
	tracker  *cri.Tracker

	// synced is whether all containers of the node are known.
	synced atomic.Bool
}

// New assembles an agent. It returns an error where an option is missing or wrong.
func New(options Options) (*Agent, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	client, err := newNodeClient(options.Config, options.NodeName)
	if err != nil {
		return nil, err
	}
	sink, err := newEventSink(options.Config)
	if err != nil {
		return nil, err
	}
	a := &Agent{options: options, client: client, sink: sink, watched: newWatched()}
	a.reporter = newReporter(client, options.ReportInterval, options.Metrics, options.Log.WithName("report"))
	commands := exec.New(options.Runtime, options.ExecConcurrency, options.Metrics.Waited)
	a.worker = worker.New(worker.Options{
		Prober:  probers.New(commands, options.Version),
		Sink:    a.reporter,
		Observe: a.observe,
		Rand:    options.Rand,
	})
	a.follower = &follower{watched: a.watched, runner: a.worker, report: a.reporter, log: options.Log.WithName("plan")}
	wanted := func() bool { return a.follower.probes.Load() > 0 }
	a.tracker = cri.NewTracker(options.Runtime, wanted, a.callbacks(), options.Log.WithName("runtime"))
	options.Metrics.Watch(options.NodeName, options.Version, agentmetrics.Now{
		Planned: a.follower.probes.Load, Generation: a.follower.inForce.Load, Queued: commands.Queued,
	})
	return a, nil
}

// callbacks hands what the tracker tells on to the worker.
func (a *Agent) callbacks() cri.Callbacks {
	return cri.Callbacks{
		OnChange: func(c cri.Instance) {
			if pod, planned := a.reporter.podName(c.PodUID); planned {
				a.options.Log.V(logging.Decisions).Info("Container changed", "pod", pod.String(), "container", c.Name,
					"containerID", c.ID, "running", c.Running)
			}
			a.worker.ContainerChanged(c.ContainerKey, streak.ContainerRun{
				ID: c.ID, Running: c.Running, StartedAt: c.StartedAt, Reason: c.Reason,
			})
		},
		OnGone: func(c probeid.ContainerKey) { a.worker.ContainerGone(c) },
		OnSynced: func() {
			a.synced.Store(true)
			a.worker.ContainersSynced()
		},
	}
}

// observe counts a run, and logs it.
func (a *Agent) observe(run worker.Run) {
	a.tell(run)
	a.options.Metrics.Probed(run.Handler, resultOf(run), run.Duration)
}

// tell logs a run of a planned probe.
func (a *Agent) tell(run worker.Run) {
	log := a.options.Log.V(logging.Runs)
	if run.Err != nil {
		log = a.options.Log.V(logging.Decisions)
	}
	if !log.Enabled() {
		return
	}
	log = log.WithValues("pod", run.Pod.String(), "probe", run.Key.String(), "container", run.Key.Name)
	if run.Err != nil {
		log.Info("Probe told nothing", "reason", run.Err.Error())
		return
	}
	log.Info("Ran probe", "success", run.Outcome.Success, "streak", run.Streak, "message", run.Outcome.Message, "took", run.Duration)
}

// resultOf is what the metrics call the run.
func resultOf(run worker.Run) agentmetrics.Result {
	switch {
	case run.Err != nil && probe.TimedOut(run.Err), run.Outcome.TimedOut:
		return agentmetrics.ResultTimeout
	case run.Err != nil:
		return agentmetrics.ResultError
	case run.Outcome.Success:
		return agentmetrics.ResultSuccess
	default:
		return agentmetrics.ResultFailure
	}
}

// Run probes and reports until ctx ends. Then it stops probing, writes what is left to be
// reported, and returns within five seconds. An error says what has failed for good.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(logr.NewContext(ctx, a.options.Log))
	defer cancel(nil)

	// Reports and events outlive ctx, so that the last states arrive.
	last, stop := context.WithCancel(context.WithoutCancel(ctx))
	emitter := newEvents(a.sink, a.options.NodeName, a.options.Metrics, a.options.Log.WithName("events"))
	var parts, reports, emitting sync.WaitGroup
	emitting.Go(func() { emitter.run(last) })
	defer emitting.Wait()
	defer stop()
	reporting, stopReporting := context.WithCancel(last)
	defer stopReporting()
	reports.Go(func() { a.reporter.run(reporting, emitter) })

	reflector := a.client.reflector(a.watched, a.options.Log.WithName("watch"))
	parts.Go(func() { reflector.RunWithContext(ctx) })
	parts.Go(func() { a.follower.run(ctx) })
	parts.Go(func() { a.worker.Run(ctx) })
	parts.Go(func() { cancelOn(cancel, a.tracker.Run(ctx)) })
	if a.options.Listener != nil {
		parts.Go(func() { cancelOn(cancel, serve(ctx, a.options.Listener, handler(a.options.Gatherer, a.checks()))) })
	}
	if a.options.Profiles != nil {
		parts.Go(func() { cancelOn(cancel, serve(ctx, a.options.Profiles, profiles())) })
	}
	parts.Wait()
	stopReporting()
	reports.Wait()

	drain, done := context.WithTimeout(last, drainTimeout)
	defer done()
	emitter.Drain(drain)
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// checks are what readiness means: the plan is in force and the containers are known.
func (a *Agent) checks() []check {
	return []check{
		{name: "plan", ready: a.follower.synced.Load},
		{name: "containers", ready: a.synced.Load},
		{name: "runtime", ready: a.options.Runtime.Connected},
	}
}

// cancelOn ends everything because of an error, if there is one.
func cancelOn(cancel context.CancelCauseFunc, err error) {
	if err != nil {
		cancel(err)
	}
}
