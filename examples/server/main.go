// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command example-server is the server of the examples: it speaks HTTP, TCP or gRPC, and
// is slow to start, turns unhealthy or goes deaf when it is told to.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: example-server http|tcp|grpc [flags]`

// options are what the server is told. Times count from the program's start; zero is never,
// but for startAfter.
type options struct {
	host string
	port int
	// startAfter is when the server begins to listen.
	startAfter time.Duration
	// healthyFor is when it turns unhealthy: HTTP answers 500, TCP no longer listens, gRPC
	// is NOT_SERVING.
	healthyFor time.Duration
	// alternate is how long the gRPC service stays in a state before it takes the other.
	alternate time.Duration
	// service is what the health of the gRPC server is asked for by, beside the whole.
	service string
	// header is what HTTP requests must carry, as name=value.
	header string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "example-server:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and writes what it does to out.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	mode, o := args[0], options{}
	flags := flag.NewFlagSet(mode, flag.ContinueOnError)
	flags.StringVar(&o.host, "host", "", "address to listen on; all of them if empty")
	flags.IntVar(&o.port, "port", 8080, "port to listen on")
	flags.DurationVar(&o.startAfter, "start-after", 0, "begin to listen this long after the start")
	flags.DurationVar(&o.healthyFor, "healthy-for", 0, "turn unhealthy this long after the start; never if 0")
	flags.DurationVar(&o.alternate, "alternate", 0, "gRPC: change the service's state each time this has passed; never if 0")
	flags.StringVar(&o.service, "service", "", "gRPC: name of a service with a state of its own")
	flags.StringVar(&o.header, "require-header", "", "HTTP: refuse requests without this header, as NAME=VALUE")
	if err := flags.Parse(args[1:]); err != nil {
		return fmt.Errorf("read the flags: %w", err)
	}
	if o.header != "" && !strings.Contains(o.header, "=") {
		return fmt.Errorf("--require-header: %q: must be NAME=VALUE", o.header)
	}
	serve, known := map[string]func(context.Context, net.Listener, options) error{
		"http": serveHTTP, "tcp": serveTCP, "grpc": serveGRPC,
	}[mode]
	if !known {
		return fmt.Errorf("%q: %s", mode, usage)
	}
	start := time.Now()
	if !pause(ctx, o.startAfter) {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(o.host, strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintf(out, "%s: listening on %s\n", mode, listener.Addr())
	if o.healthyFor > 0 {
		o.healthyFor = max(o.healthyFor-time.Since(start), time.Nanosecond)
	}
	return serve(ctx, listener, o)
}

// pause waits, and reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
