// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/google/pprof/profile"
	"golang.org/x/sync/errgroup"
)

// Profile is the summary of a processor profile: shares of named parts.
type Profile struct {
	// Program is what was profiled, such as "API server".
	Program string `json:"program"`
	// CPU is the processor time in the profile, in seconds.
	CPU float64 `json:"cpu"`
	// Parts are disjoint and sorted by share.
	Parts []Part `json:"parts"`
}

// Part is the share of a part of the processor time.
type Part struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// Category assigns samples to a part of a profile.
type Category struct {
	Name string
	// Functions matches full names of functions, such as
	// "k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager".
	Functions *regexp.Regexp
}

// otherPart is the part of samples that no category matches.
const otherPart = "other"

// Summarize divides a profile into categories. A sample counts for the first category of the
// list that matches any function of its stack.
func Summarize(program string, p *profile.Profile, categories []Category) Profile {
	index := len(p.SampleType) - 1
	shares := map[string]int64{}
	total := int64(0)
	for _, sample := range p.Sample {
		value := sample.Value[index]
		total += value
		shares[categoryOf(sample, categories)] += value
	}
	out := Profile{Program: program, CPU: float64(total) / 1e9}
	for name, value := range shares {
		out.Parts = append(out.Parts, Part{Name: name, Share: float64(value) / float64(max(total, 1))})
	}
	slices.SortFunc(out.Parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func categoryOf(sample *profile.Sample, categories []Category) string {
	for _, c := range categories {
		for _, location := range sample.Location {
			for _, line := range location.Line {
				if line.Function != nil && c.Functions.MatchString(line.Function.Name) {
					return c.Name
				}
			}
		}
	}
	return otherPart
}

// Profiled runs load repeatedly and records processor profiles of the API server and the
// programs for the period. Programs are listed by the name for the page.
func (s *Server) Profiled(ctx context.Context, period time.Duration, programs map[string]*Program, load func(context.Context) error) ([]Profile, error) {
	loading, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		for loading.Err() == nil {
			if err := load(loading); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	names := []string{"API server"}
	for name := range programs {
		names = append(names, name)
	}
	slices.Sort(names)
	out := make([]Profile, len(names))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() error {
			p, err := s.profile(ctx, programs[name], period)
			if err != nil {
				return fmt.Errorf("profile %s: %w", name, err)
			}
			out[i] = Summarize(name, p, categoriesOf(name))
			return nil
		})
	}
	err := group.Wait()
	stop()
	if loadErr := <-done; loadErr != nil && loading.Err() == nil {
		return nil, loadErr
	}
	return out, err //nolint:wrapcheck // profile has wrapped the error.
}

// profile records a processor profile of a program, or of the API server.
func (s *Server) profile(ctx context.Context, p *Program, period time.Duration) (*profile.Profile, error) {
	length := strconv.Itoa(max(1, int(period.Seconds())))
	var text []byte
	var err error
	if p == nil {
		text, err = s.raw.Get().AbsPath("/debug/pprof/profile").Param("seconds", length).DoRaw(ctx)
	} else {
		text, err = get(ctx, "http://"+p.Profiles+"/debug/pprof/profile?seconds="+length)
	}
	if err != nil {
		return nil, fmt.Errorf("record processor profile: %w", err)
	}
	parsed, err := profile.ParseData(text)
	if err != nil {
		return nil, fmt.Errorf("parse profile: %w", err)
	}
	return parsed, nil
}
