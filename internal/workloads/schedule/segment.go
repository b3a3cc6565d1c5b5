// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math/bits"
	"time"
)

const (
	minute = 60
	day    = 24 * 60 * minute
	// widest is more than two zones can differ: an earlier segment can only overlap a later one in local time
	// if it has ended less than this before it.
	widest = 30 * time.Hour
	// star is the bit by which the parser marks a field that restricts nothing.
	star = 1 << 63
)

// segment is a time between two changes of a zone's clocks.
type segment struct {
	*Schedule
	// start and end are its bounds, zero if there is none. The end is not part of it.
	start, end time.Time
	// offset is that of local times, in seconds: all others are in local seconds, which are those since 1970
	// plus the offset.
	offset int64
	// from is the first local time that counts, and gap the first that the clocks have skipped: equal to from if
	// none were. Local times before gap were shown by earlier segments.
	from, gap int64
}

// segmentAt returns the segment that contains the time.
func (s Schedule) segmentAt(at time.Time) segment {
	local := at.In(s.zone)
	part := segment{Schedule: &s}
	part.start, part.end = local.ZoneBounds()
	_, offset := local.Zone()
	part.offset = int64(offset)
	if part.start.IsZero() {
		part.from = -1 << 62
		part.gap = part.from
		return part
	}
	part.from = part.local(part.start)
	part.gap = part.from
	if s.fixed {
		part.gap = s.shown(part.start)
		part.from = max(part.from, part.gap)
	}
	return part
}

// shown returns the local time up to which the clocks have shown all times before the start of a segment.
func (s Schedule) shown(start time.Time) int64 {
	shown := int64(-1 << 62)
	// The segments before may overlap: only their offsets are sure.
	for before, until := start.Add(-time.Nanosecond).In(s.zone), start; ; {
		_, offset := before.Zone()
		shown = max(shown, until.Unix()+int64(offset))
		from, _ := before.ZoneBounds()
		if from.IsZero() || start.Sub(from) > widest {
			return shown
		}
		before, until = from.Add(-time.Nanosecond).In(s.zone), from
	}
}

// local returns the local time, rounded up to seconds.
func (p segment) local(t time.Time) int64 {
	seconds := t.Unix()
	if t.Nanosecond() > 0 {
		seconds++
	}
	return seconds + p.offset
}

// instant returns the instant of a local time.
func (p segment) instant(local int64) time.Time { return time.Unix(local-p.offset, 0).In(p.zone) }

// last returns the last local second of the segment that is not after the time.
func (p segment) last(until time.Time) int64 {
	if !p.end.IsZero() && !until.Before(p.end) {
		return p.end.Unix() - 1 + p.offset
	}
	return until.Unix() + p.offset
}

// madeUp reports whether the segment begins with a scheduled time for local times that the clocks have skipped.
func (p segment) madeUp() bool {
	if p.gap >= p.from {
		return false
	}
	_, found := p.forward(p.gap, p.from-1)
	return found
}

// next returns the first scheduled time of the segment after the time.
func (p segment) next(after time.Time) (time.Time, bool) {
	if p.start.After(after) && p.madeUp() {
		return p.start.In(p.zone), true
	}
	first := max(p.from, after.Unix()+1+p.offset)
	end := after.AddDate(0, 0, horizon)
	if !p.end.IsZero() && p.end.Before(end) {
		end = p.end
	}
	scheduled, found := p.forward(first, end.Unix()-1+p.offset)
	return p.instant(scheduled), found
}

// latest returns the last scheduled time of the segment that is not after the time.
func (p segment) latest(until time.Time) (time.Time, bool) {
	last := p.last(until)
	if scheduled, found := p.backward(max(p.from, last-horizon*day), last); found {
		return p.instant(scheduled), true
	}
	if !p.start.IsZero() && p.madeUp() {
		return p.start.In(p.zone), true
	}
	return time.Time{}, false
}

// forward returns the first local time from first to last that matches.
func (p segment) forward(first, last int64) (int64, bool) {
	at := first + floorMod(-first, minute)
	for ; at <= last; at += day - floorMod(at, day) {
		if !p.isDue(at) {
			continue
		}
		midnight := at - floorMod(at, day)
		if within, found := p.timeFrom(int((at - midnight) / minute)); found {
			scheduled := midnight + int64(within)*minute
			return scheduled, scheduled <= last
		}
	}
	return 0, false
}

// backward returns the last local time from first to last that matches.
func (p segment) backward(first, last int64) (int64, bool) {
	for at := last - floorMod(last, minute); at >= first; at -= floorMod(at, day) + minute {
		if !p.isDue(at) {
			continue
		}
		midnight := at - floorMod(at, day)
		if within, found := p.timeUntil(int((at - midnight) / minute)); found {
			scheduled := midnight + int64(within)*minute
			return scheduled, scheduled >= first
		}
	}
	return 0, false
}

// isDue reports whether the day of the local time matches. If both day fields are restricted, either one may
// match.
func (p segment) isDue(local int64) bool {
	at := time.Unix(local, 0).UTC()
	if p.fields.Month&(1<<uint(at.Month())) == 0 {
		return false
	}
	dom, dow := p.fields.Dom&(1<<uint(at.Day())) != 0, p.fields.Dow&(1<<uint(at.Weekday())) != 0
	if p.fields.Dom&star != 0 || p.fields.Dow&star != 0 {
		return dom && dow
	}
	return dom || dow
}

// timeFrom returns the first time of a day that matches and is not before a time, in minutes.
func (p segment) timeFrom(earliest int) (int, bool) {
	for hour := earliest / 60; hour < 24; hour, earliest = hour+1, 0 {
		if p.fields.Hour&(1<<uint(hour)) == 0 {
			continue
		}
		if left := p.fields.Minute &^ star >> uint(earliest%60) << uint(earliest%60); left != 0 {
			return hour*60 + bits.TrailingZeros64(left), true
		}
	}
	return 0, false
}

// timeUntil returns the last time of a day that matches and is not after a time, in minutes.
func (p segment) timeUntil(latest int) (int, bool) {
	for hour := latest / 60; hour >= 0; hour, latest = hour-1, 59 {
		if p.fields.Hour&(1<<uint(hour)) == 0 {
			continue
		}
		if left := p.fields.Minute &^ star & (1<<uint(latest%60+1) - 1); left != 0 {
			return hour*60 + bits.Len64(left) - 1, true
		}
	}
	return 0, false
}

// floorMod returns the remainder of a division that rounds down.
func floorMod(a, b int64) int64 { return ((a % b) + b) % b }
