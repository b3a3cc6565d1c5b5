// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedule computes the instants at which a cron schedule is due in a time zone: its scheduled times. Where the
// clocks of the zone change, it follows the rule of Vixie cron: a schedule with a fixed time of day is due
// exactly once for each local time, and another one for each time that the clocks show. It is pure.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // The image of the program has no files.

	"github.com/robfig/cron/v3"
)

const (
	// MaxLength is the maximum length of a schedule in bytes.
	MaxLength = 256
	// DefaultZone is the zone of schedules that name none.
	DefaultZone = "Etc/UTC"
	// horizon is how far scheduled times are searched, in days: five years.
	horizon = 5 * 366
)

// ErrZone means that the time zone is not known.
var ErrZone = errors.New("unknown time zone")

// Schedule is a parsed schedule. Its scheduled times are at full minutes of its zone, or for @every at multiples of the
// period.
type Schedule struct {
	fields cron.SpecSchedule
	// every is the period of @every, or zero.
	every time.Duration
	zone  *time.Location
	// fixed is whether neither the minute nor the hour begins with *: local times that the clocks skip are made
	// up, and repeated ones are due once.
	fixed bool
}

// Parse parses a schedule of five fields, a descriptor from @yearly to @hourly, or @every with a duration of at
// least a second. The time zone is a name of the IANA database, empty for DefaultZone. The schedule may name it
// in place of the parameter, with the prefix TZ= or CRON_TZ=. The error is ErrZone if the zone is not known, and
// otherwise names what is wrong with the schedule.
func Parse(text, zone string) (Schedule, error) {
	if len(text) > MaxLength {
		return Schedule{}, fmt.Errorf("it has %d bytes, and at most %d are allowed", len(text), MaxLength)
	}
	named, rest, err := prefix(text)
	switch {
	case err != nil:
		return Schedule{}, err
	case named != "" && zone != "":
		return Schedule{}, errors.New("it names a time zone, and so does timeZone: keep one")
	case named != "":
		zone = named
	case zone == "":
		zone = DefaultZone
	}
	var s Schedule
	if s.zone, err = time.LoadLocation(zone); err != nil || zone == "Local" {
		return Schedule{}, fmt.Errorf("%w %q", ErrZone, zone)
	}
	parsed, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor).Parse(rest)
	if err != nil {
		return Schedule{}, fmt.Errorf("it must have five fields, or be a descriptor such as @daily: %w", err)
	}
	switch p := parsed.(type) {
	case *cron.SpecSchedule:
		s.fields, s.fixed = *p, isFixed(rest)
	case cron.ConstantDelaySchedule:
		s.every = p.Delay
	}
	return s, nil
}

// prefix returns the zone that the schedule names, or an empty text, and the rest of the schedule.
func prefix(text string) (zone, rest string, err error) {
	rest = strings.TrimSpace(text)
	name, found := strings.CutPrefix(strings.TrimPrefix(rest, "CRON_"), "TZ=")
	if !found {
		return "", rest, nil
	}
	zone, rest, found = strings.Cut(name, " ")
	if !found || zone == "" {
		return "", "", errors.New("a zone and a space must follow TZ=")
	}
	return zone, strings.TrimSpace(rest), nil
}

// isFixed reports whether neither the minute nor the hour begins with *.
func isFixed(text string) bool {
	if strings.HasPrefix(text, "@") {
		return text != "@hourly"
	}
	for _, field := range strings.Fields(text)[:2] {
		if strings.HasPrefix(field, "*") || strings.HasPrefix(field, "?") {
			return false
		}
	}
	return true
}

// Zone returns the time zone.
func (s Schedule) Zone() *time.Location { return s.zone }

// Next returns the first scheduled time after the time, and false if there is none within five years. Scheduled times of @every are
// multiples of the period after since.
func (s Schedule) Next(after, since time.Time) (time.Time, bool) {
	if s.every > 0 {
		return s.multiple(after, since, 1), true
	}
	last := after.AddDate(0, 0, horizon)
	for part := s.segmentAt(after.Add(time.Nanosecond)); ; part = s.segmentAt(part.end) {
		if scheduled, found := part.next(after); found {
			return scheduled, true
		}
		if part.end.IsZero() || part.end.After(last) {
			return time.Time{}, false
		}
	}
}

// Latest returns the last scheduled time that is after one time and not after another, and false if there is none, or if
// it is more than five years ago. Scheduled times of @every are as for Next.
func (s Schedule) Latest(after, until, since time.Time) (time.Time, bool) {
	if s.every > 0 {
		scheduled := s.multiple(until, since, 0)
		return scheduled, scheduled.After(after) && scheduled.After(since)
	}
	if first := until.AddDate(0, 0, -horizon); after.Before(first) {
		after = first
	}
	for part := s.segmentAt(until); ; part = s.segmentAt(part.start.Add(-time.Nanosecond)) {
		if scheduled, found := part.latest(until); found {
			return scheduled, scheduled.After(after)
		}
		if part.start.IsZero() || !part.start.After(after) {
			return time.Time{}, false
		}
	}
}

// multiple returns the last multiple of the period that is not after the time, plus more periods.
func (s Schedule) multiple(at, since time.Time, more int64) time.Time {
	since = since.Truncate(time.Second)
	elapsed := at.Sub(since)
	if elapsed < 0 {
		return since.Add(time.Duration(more) * s.every)
	}
	return since.Add((time.Duration(int64(elapsed/s.every) + more)) * s.every)
}

// Differs returns the first change of the zone's clocks in a period around which CronJob and OpenKruise have other scheduled times,
// and false if there is none.
func (s Schedule) Differs(from, until time.Time) (time.Time, bool) {
	if s.every > 0 {
		return time.Time{}, false
	}
	theirs := s.fields
	theirs.Location = s.zone
	for part := s.segmentAt(from); !part.end.IsZero() && part.end.Before(until); part = s.segmentAt(part.end) {
		at, last := part.end.Add(-widest), part.end.Add(widest)
		for !at.After(last) {
			next, found := s.Next(at, at)
			other := theirs.Next(at)
			if found && !next.Equal(other) && (!next.After(last) || !other.After(last)) {
				return part.end.In(s.zone), true
			}
			if at = next; !found {
				break
			}
		}
	}
	return time.Time{}, false
}
