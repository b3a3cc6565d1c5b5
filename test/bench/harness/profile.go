// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/pprof/profile"
	"golang.org/x/sync/errgroup"
)

// Profile is what the API server does while a request is repeated.
type Profile struct {
	// PerCall is the processor time per request, and Within is that of functions whose names begin with a prefix and of those that
	// they call.
	PerCall, Within time.Duration
	// Samples is the number of samples of the profile, one for 10 ms.
	Samples int64
}

// Profile repeats work for the period, rounded up to seconds, with Clients at once, and returns what the API server does
// meanwhile. Its parts differ much less between two runs than the processor time does.
func (s *Server) Profile(period time.Duration, prefix string, work func(ctx context.Context, i int) error) Profile {
	s.b.Helper()
	var calls atomic.Int64
	var ended atomic.Bool
	var data []byte
	used := s.Counted(func() {
		group, ctx := errgroup.WithContext(s.b.Context())
		for range Clients {
			group.Go(func() error {
				for !ended.Load() {
					if err := work(ctx, int(calls.Add(1))); err != nil {
						return err
					}
				}
				return nil
			})
		}
		group.Go(func() (err error) {
			defer ended.Store(true)
			seconds := int((period + time.Second - 1) / time.Second)
			data, err = s.Raw.Get().AbsPath("/debug/pprof/profile").Param("seconds", strconv.Itoa(seconds)).DoRaw(ctx)
			return err
		})
		s.b.Must(group.Wait())
	})
	parsed, err := profile.Parse(bytes.NewReader(data))
	s.b.Must(err)
	within, all := samples(parsed, prefix)
	perCall := used.CPU / time.Duration(calls.Load())
	return Profile{PerCall: perCall, Within: perCall * time.Duration(within) / time.Duration(max(1, all)), Samples: all}
}

// samples returns the number of samples in functions with the prefix or in those that they call, and of all samples.
func samples(p *profile.Profile, prefix string) (within, all int64) {
	for _, sample := range p.Sample {
		all += sample.Value[0]
		if slices.ContainsFunc(sample.Location, func(l *profile.Location) bool {
			return slices.ContainsFunc(l.Line, func(line profile.Line) bool { return strings.HasPrefix(line.Function.Name, prefix) })
		}) {
			within += sample.Value[0]
		}
	}
	return within, all
}
