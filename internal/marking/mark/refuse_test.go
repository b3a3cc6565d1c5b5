// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// server accepts marks that are small enough together and contain no invalid key.
type server struct {
	limit   int
	invalid map[mark.Key]bool
	tries   int
}

func (s *server) try(marks mark.Marks) (refusal, err error) {
	s.tries++
	size := 0
	for key, value := range marks {
		if s.invalid[key] {
			return errors.New("invalid " + key.Name), nil
		}
		size += len(value.Text)
	}
	if size > s.limit {
		return errors.New("too long"), nil
	}
	return nil, nil
}

// numbered returns n probes with one annotation each, whose values have the sizes.
func numbered(sizes ...int) (desired mark.Marks, claims mark.Claims, order []identity.ID) {
	desired, claims = mark.Marks{}, mark.Claims{}
	for i, size := range sizes {
		id := identity.ID{Marker: "m", Probe: fmt.Sprint(i)}
		key := mark.Annotation(fmt.Sprint(i))
		desired[key], claims[key], order = text(fmt.Sprintf("%0*d", size, 0)), id, append(order, id)
	}
	return desired, claims, order
}

func TestAccepted(t *testing.T) {
	cases := map[string]struct {
		sizes   []int
		limit   int
		invalid []int
		want    []string
		tries   int
	}{
		"only probe":                      {sizes: []int{9}, limit: 5, want: []string{"0: too long"}, tries: 2},
		"largest first":                   {sizes: []int{9, 1, 1}, limit: 5, want: []string{"0: too long"}, tries: 4},
		"invalid in the middle":           {sizes: []int{1, 1, 1, 1}, limit: 9, invalid: []int{2}, want: []string{"2: invalid 2"}, tries: 5},
		"too large together":              {sizes: []int{3, 3, 3, 1}, limit: 7, want: []string{"2: too long"}, tries: 5},
		"several":                         {sizes: []int{3, 3, 3, 3, 1}, limit: 7, invalid: []int{0}, want: []string{"0: invalid 0", "3: too long"}, tries: 6},
		"all":                             {sizes: []int{3, 3}, limit: 2, want: []string{"0: too long", "1: too long"}, tries: 3},
		"other annotations leave no room": {sizes: []int{1, 1}, limit: -1, want: nil, tries: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &server{limit: tc.limit, invalid: map[mark.Key]bool{}}
			for _, i := range tc.invalid {
				s.invalid[mark.Annotation(fmt.Sprint(i))] = true
			}
			desired, claims, order := numbered(tc.sizes...)
			reason, _ := s.try(desired)
			s.tries = 0
			accepted, refused, err := mark.Accepted(desired, claims, order, reason, s.try)
			var got []string
			for _, r := range refused {
				got = append(got, r.Probe.Probe+": "+r.Reason.Error())
			}
			expect.Equal(t, "refused", tc.want, got)
			if (err != nil) != (tc.want == nil) {
				t.Errorf("error %v, want one only if no probe is at fault", err)
			}
			if err == nil && len(accepted) != len(tc.sizes)-len(tc.want) {
				t.Errorf("accepted %v", accepted.Keys())
			}
			expect.Equal(t, "tries", tc.tries, s.tries)
		})
	}
}

func TestAcceptedReturnsOtherErrors(t *testing.T) {
	desired, claims, order := numbered(1, 1)
	down := errors.New("down")
	_, _, err := mark.Accepted(desired, claims, order, errors.New("too long"), func(mark.Marks) (error, error) { return nil, down })
	if !errors.Is(err, down) {
		t.Errorf("error %v, want %v", err, down)
	}
}

// The probes that are not tried are omitted: a search takes at most MaxTries requests.
func TestAcceptedIsBounded(t *testing.T) {
	desired, claims, order := numbered(make([]int, 100)...)
	s := &server{limit: 200, invalid: map[mark.Key]bool{mark.Annotation("5"): true}}
	reason, _ := s.try(desired)
	s.tries = 0
	accepted, refused, err := mark.Accepted(desired, claims, order, reason, s.try)
	if err != nil || s.tries != mark.MaxTries || len(accepted) != mark.MaxTries-2 || len(refused) != 100-len(accepted) {
		t.Errorf("%d tries, %d accepted, %d refused, error %v", s.tries, len(accepted), len(refused), err)
	}
}

// FuzzAccepted draws sizes and invalid keys from the seed. What remains must be accepted, and the
// number of tries is bounded.
func FuzzAccepted(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 3))
		sizes := make([]int, 1+rng.IntN(40))
		s := &server{limit: rng.IntN(200), invalid: map[mark.Key]bool{}}
		for i := range sizes {
			sizes[i] = 1 + rng.IntN(20)
			s.invalid[mark.Annotation(fmt.Sprint(i))] = rng.IntN(8) == 0
		}
		desired, claims, order := numbered(sizes...)
		reason, _ := s.try(desired)
		if reason == nil {
			return
		}
		s.tries = 0
		accepted, refused, err := mark.Accepted(desired, claims, order, reason, s.try)
		expect.NoError(t, err)
		if s.tries > min(len(sizes)+1, mark.MaxTries) {
			t.Errorf("%d tries", s.tries)
		}
		if again, _ := s.try(accepted); again != nil {
			t.Errorf("the marks that remain are refused: %v", again)
		}
		expect.Equal(t, fmt.Sprintf("%d accepted and %d refused marks", len(accepted), len(refused)), len(desired), len(accepted)+len(refused))
	})
}

func TestReplace(t *testing.T) {
	set := func(status corev1.ConditionStatus) corev1.PodCondition {
		value := condition(status, "m").Condition
		return corev1.PodCondition{
			Type: "c", Status: value.Status, Message: value.Message,
			LastProbeTime: value.LastProbeTime, LastTransitionTime: value.LastTransitionTime,
		}
	}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	pod := func() *builders.PodBuilder { return builders.Pod("ns", "a") }
	all := mark.Marks{
		mark.Label("a"): text("1"), mark.Annotation("b"): text("2"), mark.ConditionType("c"): condition("True", "m"),
	}
	cases := map[string]struct {
		before         *builders.PodBuilder
		owned, desired mark.Marks
		want           *builders.PodBuilder
	}{
		"sets new marks": {
			before:  pod().Label("app", "x").Condition(ready),
			desired: all,
			want:    pod().Label("app", "x").Label("a", "1").Annotation("b", "2").Condition(ready).Condition(set("True")),
		},
		"removes only marks that are no longer desired": {
			before: pod().Label("app", "x").Label("a", "1").Annotation("b", "2").Annotation("note", "y").Condition(set("True")).Condition(ready),
			owned:  all,
			want:   pod().Label("app", "x").Annotation("note", "y").Condition(ready),
		},
		"keeps the order of conditions": {
			before:  pod().Condition(set("True")).Condition(ready),
			owned:   mark.Marks{mark.ConditionType("c"): condition("True", "m")},
			desired: mark.Marks{mark.ConditionType("c"): condition("False", "m")},
			want:    pod().Condition(set("False")).Condition(ready),
		},
		"removes a taken-over key": {
			before: pod().Label("app", "marked"),
			owned:  mark.Marks{mark.Label("app"): text("marked")},
			want:   pod(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.before.Build()
			mark.Replace(got, tc.owned, tc.desired)
			expect.Equal(t, "pod", tc.want.Build(), got, cmpopts.EquateEmpty())
		})
	}
}
