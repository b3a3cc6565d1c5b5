// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/process"
)

// Program is a running program.
type Program struct {
	b       *Bench
	metrics string
	// log is the path of its output.
	log     string
	command *exec.Cmd
}

// Manager starts seamark-manager with the rights of its service account, as the only replica
// and so without leader election. Like all programs, it stops when the measure ends, unless Stop was
// called.
func (s *Server) Manager() *Program {
	s.b.Helper()
	return s.seamark("seamark-manager", s.ManagerConfig(), "--leader-elect=false", "--health-probe-bind-address=0")
}

// Agent starts seamark-agent for a node with the rights of its service account. The runtime
// listens on the socket.
func (s *Server) Agent(node, socket string) *Program {
	s.b.Helper()
	return s.seamark("seamark-agent", s.AgentConfig(node), "--node-name="+node, "--cri-endpoint=unix://"+socket)
}

// Workloads starts seamark-workloads with the rights of its service account, as the only replica.
func (s *Server) Workloads() *Program {
	s.b.Helper()
	return s.seamark(workloadsAccount, s.workloadsConfig(env.WorkloadsRights()...), "--leader-elect=false", "--health-probe-bind-address=0")
}

// CronJobs starts seamark-workloads with AdvancedCronJobs and the rights of its service account.
func (s *Server) CronJobs() *Program {
	s.b.Helper()
	return s.controllers("advancedCronJob", append(env.WorkloadsRights(), "config/cronjobs/rbac.yaml", "config/cronjobs/policy.yaml")...)
}

// ImagePulls starts seamark-workloads with ImagePullJobs and the rights of its service account.
func (s *Server) ImagePulls() *Program {
	s.b.Helper()
	return s.controllers("imagePullJob", "config/workloads/rbac.yaml", "config/workloads/grants.yaml", "config/imagepulls/rbac.yaml")
}

// BroadcastJobs starts seamark-workloads with BroadcastJobs and the rights of its service account.
func (s *Server) BroadcastJobs() *Program {
	s.b.Helper()
	return s.controllers("broadcastJob", append(env.WorkloadsRights(), "config/broadcastjobs/rbac.yaml")...)
}

// DaemonSets starts seamark-workloads with DaemonSets and the rights of its service account.
func (s *Server) DaemonSets() *Program {
	s.b.Helper()
	return s.controllers("daemonSet", append(env.WorkloadsRights(), "config/daemonsets/rbac.yaml")...)
}

// controllers starts seamark-workloads with a controller besides those that always run, and the rights in the files.
func (s *Server) controllers(name string, files ...string) *Program {
	s.b.Helper()
	return s.seamark(workloadsAccount, s.workloadsConfig(files...), "--config="+s.b.workloads("controllers: {"+name+": {enabled: true}}"),
		"--leader-elect=false", "--health-probe-bind-address=0")
}

// workloadsConfig installs the rights in the files and returns a configuration of seamark-workloads. Until the measure ends, it
// does what the manager does for it.
func (s *Server) workloadsConfig(files ...string) *rest.Config {
	s.b.Helper()
	config := s.ServiceAccount(s.b.T, env.SystemNamespace, workloadsAccount, nil)
	s.install(files...)
	granter, err := grants.New(grants.Options{
		Config: s.ManagerConfig(), Namespace: env.SystemNamespace, Resources: configv1alpha1.GrantResources(), Log: logr.Discard(),
	})
	s.b.Must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- granter.Start(ctx) }()
	s.b.Cleanup(func() { cancel(); s.b.Must(<-done) })
	return config
}

// workloads writes a configuration of seamark-workloads and returns its path.
func (b *Bench) workloads(fields string) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "workloads.yaml")
	b.Must(os.WriteFile(file, []byte("apiVersion: config.seamark.dev/v1alpha1\nkind: WorkloadsConfiguration\n"+fields+"\n"), 0o600))
	return file
}

// SidecarSets starts seamark-workloads with SidecarSets, and an injector, each with the rights of its service
// account.
func (s *Server) SidecarSets() (controller, injector *Program) {
	s.b.Helper()
	own := s.ServiceAccount(s.b.T, env.SystemNamespace, injectorAccount, nil)
	config := s.workloadsConfig(
		"config/workloads/rbac.yaml", "config/workloads/grants.yaml", "config/sidecarsets/rbac.yaml",
		"config/sidecarsets/injector-rbac.yaml", "config/sidecarsets/webhooks.yaml",
	)
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: injectorAccount}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: injectorAccount + "-ca"}},
	} {
		s.b.Must(s.Client.Create(s.b.Context(), object))
	}
	_, port, err := net.SplitHostPort(env.FreeAddress(s.b.T))
	s.b.Must(err)
	url := "https://localhost:" + port
	s.permitURL(url)
	file := s.b.workloads("controllers: {sidecarSet: {enabled: true}}\ninjector: {port: " + port + ", url: \"" + url + "\"}")
	options := []string{"--config=" + file, "--leader-elect=false", "--health-probe-bind-address=0"}
	injector = s.seamark(workloadsAccount, own, append([]string{"injector"}, options...)...)
	return s.seamark(workloadsAccount, config, options...), injector
}

// ControllerManager starts kube-controller-manager, the peer of seamark-workloads, with the named
// controllers only and without a client-side rate limit. The measure is skipped if the folder of the
// API server's program does not have it.
func (s *Server) ControllerManager(controllers string, args ...string) *Program {
	s.b.Helper()
	return s.start(s.b.KubernetesProgram("kube-controller-manager"), "", s.peerConfig(),
		append(env.ControllerManagerArgs(s.b.T, controllers), args...)...)
}

// KubernetesProgram returns the path of a program in the folder of the API server's program. The
// measure is skipped if it is not there.
func (b *Bench) KubernetesProgram(name string) string {
	b.Helper()
	bin, err := env.Binaries()
	b.Must(err)
	path := filepath.Join(bin, name)
	if _, err := os.Stat(path); err != nil {
		b.Skip(err)
	}
	return path
}

// SeamarkProgram returns the path of a program of Seamark.
func (b *Bench) SeamarkProgram(name string) string {
	b.Helper()
	path, err := process.Built(name, "bench")
	b.Must(err)
	return path
}

func (s *Server) seamark(name string, config *rest.Config, args ...string) *Program {
	s.b.Helper()
	metrics := env.FreeAddress(s.b.T)
	return s.start(s.b.SeamarkProgram(name), metrics, config, append(args, "--metrics-bind-address="+metrics)...)
}

func (s *Server) start(path, metrics string, config *rest.Config, args ...string) *Program {
	s.b.Helper()
	p := &Program{b: s.b, metrics: metrics, log: filepath.Join(s.b.TempDir(), "log")}
	p.command = exec.Command(path, append(args, "--kubeconfig="+env.Kubeconfig(s.b.T, config))...)
	s.b.Cleanup(p.end)
	p.run()
	return p
}

// run starts the command. Stop ends it, and not a context, so that it can write its last report.
func (p *Program) run() {
	p.b.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	p.b.Must(err)
	defer func() { _ = log.Close() }()
	p.command.Stdout, p.command.Stderr = log, log
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.b.Must(p.command.Start())
}

// end stops the program, and prints the last lines of its log if the measure has failed: it may have
// ended on its own.
func (p *Program) end() {
	p.Stop()
	const lines = 10
	if text, err := os.ReadFile(p.log); err == nil && p.b.Failed() {
		all := strings.SplitAfter(string(text), "\n")
		p.b.Logf("end of the log of %s:\n%s", p.command.Path, strings.Join(all[max(0, len(all)-lines):], ""))
	}
}

// Restart stops the program and starts it again with the same arguments.
func (p *Program) Restart() {
	p.b.Helper()
	p.Stop()
	p.Start()
}

// Start starts the stopped program again with the same arguments.
func (p *Program) Start() {
	p.b.Helper()
	p.command = exec.Command(p.command.Path, p.command.Args[1:]...)
	p.run()
}

// stopTimeout is how long a program may take to stop before it is killed.
const stopTimeout = time.Minute

// Stop ends the program and waits. It may be called again.
func (p *Program) Stop() {
	p.b.Helper()
	if p.command.Process == nil || p.command.ProcessState != nil {
		return
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	defer time.AfterFunc(stopTimeout, func() { _ = p.command.Process.Kill() }).Stop()
	var exit *exec.ExitError
	if err := p.command.Wait(); err != nil && !errors.As(err, &exit) {
		p.b.Errorf("stop %s: %v", p.command.Path, err)
	}
}

// Usage is the memory and processor time of a process.
type Usage struct {
	// RSS and Peak are the current and the maximum memory in bytes. Anonymous is the part of RSS
	// that belongs to no file; the rest is mostly the program itself.
	RSS, Peak, Anonymous uint64
	// CPU is the processor time since the start, with a resolution of 10 ms.
	CPU time.Duration
}

// Usage reads the usage of the running program.
func (p *Program) Usage() Usage {
	p.b.Helper()
	usage, err := UsageOf(p.command.Process.Pid)
	p.b.Must(err)
	return usage
}

// UsageOf reads the usage of a process.
func UsageOf(pid int) (Usage, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("find process %d: %w", pid, err)
	}
	status, err := proc.NewStatus()
	if err != nil {
		return Usage{}, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	stat, err := proc.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("read processor time of process %d: %w", pid, err)
	}
	return Usage{RSS: status.VmRSS, Peak: status.VmHWM, Anonymous: status.RssAnon, CPU: seconds(stat.CPUTime())}, nil
}

// CPUTime returns the processor time that this process has used, 0 if the system does not report it.
func CPUTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Mebibyte is the number of bytes in a MiB.
const Mebibyte = 1 << 20

// Families reads the program's own metrics.
func (p *Program) Families(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	return families(ctx, "http://"+p.metrics+"/metrics")
}

// Scrape reads the program's own metrics and returns their size in bytes.
func (p *Program) Scrape(ctx context.Context) (size int, err error) {
	text, err := read(ctx, "http://"+p.metrics+"/metrics")
	return len(text), err
}

// Total returns the sum of a counter or gauge of the program over its labels.
func (p *Program) Total(ctx context.Context, name string) (float64, error) {
	all, err := p.Families(ctx)
	if err == nil && all[name] == nil {
		err = fmt.Errorf("%s has no metric %s", p.command.Path, name)
	}
	return total(all, name), err
}

// Runs waits until the program serves its metrics and a counter or gauge has at least the value.
func (p *Program) Runs(name string, value float64) {
	p.b.Helper()
	what := fmt.Sprintf("%s has %s of at least %v", p.command.Path, name, value)
	p.b.Until(what, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		n, err := p.Total(ctx, name)
		// The server of the metrics may not run yet.
		return err == nil && n >= value, nil
	})
}
