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
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/procfs"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/seamark-dev/seamark/test/integration/env"
)

// Program is a running program of Seamark.
type Program struct {
	// Metrics and Profiles are the addresses of /metrics, /readyz and of /debug/pprof/.
	Metrics, Profiles string
	// Log is the path of its output.
	Log string

	name    string
	pid     int
	command *exec.Cmd
}

// Attach returns a running program that the benchmark has not started, and does not stop.
func Attach(name string, pid int, metrics string) *Program {
	return &Program{name: name, pid: pid, Metrics: metrics}
}

// Manager starts seamark-manager with the rights of its service account, as the only replica
// and so without leader election. It stops when the measure ends, unless Stop was called.
func (s *Server) Manager(ctx context.Context, args ...string) (*Program, error) {
	config, err := s.ManagerConfig(ctx)
	if err != nil {
		return nil, err
	}
	health, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return s.run.start("seamark-manager", config, append([]string{
		"--leader-elect=false", "--health-probe-bind-address=" + health,
	}, args...)...)
}

// Agent starts seamark-agent for a node with the rights of its service account. The runtime
// listens on the socket. It stops when the measure ends, unless Stop was called.
func (s *Server) Agent(ctx context.Context, node, socket string, args ...string) (*Program, error) {
	config, err := s.AgentConfig(ctx, node)
	if err != nil {
		return nil, err
	}
	return s.run.start("seamark-agent", config, append([]string{
		"--node-name=" + node, "--cri-endpoint=unix://" + socket,
	}, args...)...)
}

// Workloads starts seamark-workloads with the rights of its service account, as the only replica. It
// stops when the measure ends, unless Stop was called.
func (s *Server) Workloads(ctx context.Context, args ...string) (*Program, error) {
	config, err := s.account(ctx, workloadsAccount, "config/workloads")
	if err != nil {
		return nil, err
	}
	health, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return s.run.start("seamark-workloads", config, append([]string{
		"--leader-elect=false", "--health-probe-bind-address=" + health,
	}, args...)...)
}

// ControllerManager starts kube-controller-manager, the peer of seamark-workloads, with the named
// controllers only and without a client-side rate limit. The error is ErrSkipped if the folder of the
// API server's program does not have it.
func (s *Server) ControllerManager(ctx context.Context, controllers string, args ...string) (*Program, error) {
	const name = "kube-controller-manager"
	bin, err := env.Binaries()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(bin, name)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w: find %s: %w", ErrSkipped, name, err)
	}
	config, err := s.account(ctx, peerAccount, "")
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("find free port: %w", err)
	}
	p, kubeconfig, err := s.run.program(name, config)
	if err != nil {
		return nil, err
	}
	p.command = exec.Command(path, append([]string{ //nolint:gosec // It is built from the sources of Kubernetes.
		"--kubeconfig=" + kubeconfig, "--controllers=" + controllers, "--leader-elect=false",
		"--bind-address=127.0.0.1", "--secure-port=" + port, "--cert-dir=" + filepath.Dir(kubeconfig),
		"--kube-api-qps=100000", "--kube-api-burst=100000",
	}, args...)...)
	if err := p.run(); err != nil {
		return nil, err
	}
	s.run.OnEnd(p.Stop)
	return p, nil
}

func (r *Run) start(name string, config *rest.Config, args ...string) (*Program, error) {
	path, err := r.Program(name)
	if err != nil {
		return nil, err
	}
	p, kubeconfig, err := r.program(name, config)
	if err != nil {
		return nil, err
	}
	for _, address := range []*string{&p.Metrics, &p.Profiles} {
		if *address, err = freeAddress(); err != nil {
			return nil, err
		}
	}
	p.command = exec.Command(path, append([]string{
		"--kubeconfig=" + kubeconfig, "--metrics-bind-address=" + p.Metrics, "--pprof-bind-address=" + p.Profiles,
	}, args...)...)
	if err := p.run(); err != nil {
		return nil, err
	}
	r.OnEnd(p.Stop)
	return p, nil
}

// program creates the folder of a program, with its kubeconfig.
func (r *Run) program(name string, config *rest.Config) (p *Program, kubeconfig string, err error) {
	dir, err := os.MkdirTemp(r.Dir, name+"-")
	if err != nil {
		return nil, "", fmt.Errorf("create folder: %w", err)
	}
	kubeconfig, err = writeKubeconfig(dir, config)
	return &Program{name: name, Log: filepath.Join(dir, "log")}, kubeconfig, err
}

// Kubeconfig writes a kubeconfig file into the folder of the run, and returns its path.
func (r *Run) Kubeconfig(config *rest.Config) (string, error) { return writeKubeconfig(r.Dir, config) }

func writeKubeconfig(dir string, config *rest.Config) (string, error) {
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(toKubeconfig(config), path); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return path, nil
}

// run starts the command. Stop ends it, and not a context, so that it can write its last report.
func (p *Program) run() error {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	p.command.Stdout, p.command.Stderr = log, log
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.pid = p.command.Process.Pid
	return nil
}

// Restart stops the program and starts it again with the same arguments.
func (p *Program) Restart() error {
	if err := p.Stop(); err != nil {
		return err
	}
	p.command = exec.Command(p.command.Path, p.command.Args[1:]...)
	return p.run()
}

// stopTimeout is how long a program may take to stop before it is killed.
const stopTimeout = time.Minute

// Stop ends the program and waits. It may be called again.
func (p *Program) Stop() error {
	if p.command.ProcessState != nil {
		return nil
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	defer time.AfterFunc(stopTimeout, func() { _ = p.command.Process.Kill() }).Stop()
	var exit *exec.ExitError
	if err := p.command.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	return nil
}

// Usage is the memory and processor time of a process.
type Usage struct {
	// RSS and Peak are the current and the maximum memory in bytes. Anonymous is the part of RSS
	// that belongs to no file; the rest is mostly the program itself.
	RSS, Peak, Anonymous uint64
	// CPU is the processor time since the start, with a resolution of 10 ms.
	CPU time.Duration
}

// Usage reads the usage of a running program.
func (p *Program) Usage() (Usage, error) {
	process, err := procfs.NewProc(p.pid)
	if err != nil {
		return Usage{}, fmt.Errorf("find %s: %w", p.name, err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return Usage{}, fmt.Errorf("read memory of %s: %w", p.name, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("read processor time of %s: %w", p.name, err)
	}
	return Usage{RSS: status.VmRSS, Peak: status.VmHWM, Anonymous: status.RssAnon, CPU: seconds(stat.CPUTime())}, nil
}

// Families reads the program's own metrics.
func (p *Program) Families(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	text, err := get(ctx, "http://"+p.Metrics+"/metrics")
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// Total returns the sum of a counter or gauge of the program over its labels.
func (p *Program) Total(ctx context.Context, name string) (float64, error) {
	families, err := p.Families(ctx)
	if err != nil {
		return 0, err
	}
	if families[name] == nil {
		return 0, fmt.Errorf("%s has no metric %s", p.name, name)
	}
	return total(families, name), nil
}

// freeAddress returns an address of the loopback interface that nothing listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find free address: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

func toKubeconfig(config *rest.Config) api.Config {
	const name = "bench"
	out := *api.NewConfig()
	out.Clusters[name] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	out.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	return out
}
