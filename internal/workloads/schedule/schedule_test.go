// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"archive/zip"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/workloads/schedule"
	"github.com/seamark-dev/seamark/test/expect"
)

func parse(tb testing.TB, text, zone string) schedule.Schedule {
	tb.Helper()
	s, err := schedule.Parse(text, zone)
	expect.NoError(tb, err)
	return s
}

func TestSlots(t *testing.T) {
	for name, test := range map[string]struct {
		schedule, zone, after string
		want                  []string
	}{
		"every five minutes":             {"*/5 * * * *", "", "2024-02-28T23:51:00Z", []string{"2024-02-28T23:55:00Z", "2024-02-29T00:00:00Z"}},
		"later than the time":            {"0 0 * * *", "", "2024-02-28T00:00:00Z", []string{"2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"}},
		"29 February":                    {"0 0 29 2 *", "", "2024-03-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		"either day":                     {"0 0 13 * FRI", "", "2026-11-08T00:00:00Z", []string{"2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z"}},
		"only the day of the week":       {"0 0 ? * MON-TUE", "", "2026-11-26T00:00:00Z", []string{"2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"}},
		"@weekly":                        {"@weekly", "", "2026-11-26T00:00:00Z", []string{"2026-11-29T00:00:00Z"}},
		"never":                          {"0 0 30 2 *", "", "2026-11-26T00:00:00Z", nil},
		"prefix":                         {"CRON_TZ=Asia/Tokyo 30 9 * * *", "", "2026-11-26T00:00:00Z", []string{"2026-11-26T00:30:00Z"}},
		"@every":                         {"@every 90m", "", "2026-11-26T01:30:00Z", []string{"2026-11-26T03:00:00Z", "2026-11-26T04:30:00Z"}},
		"a skipped time is made up":      {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"several skipped times run once": {"0,30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"}},
		"a repeated time runs once":      {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"real time goes on":              {"*/30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"}},
		"nothing is made up":             {"*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-30T00:00:00Z"}},
		"half an hour is skipped":        {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", []string{"2026-10-03T15:30:00Z"}},
		"half an hour is repeated":       {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		"a day is skipped":               {"0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z", []string{"2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"}},
		"midnight does not exist":        {"@daily", "America/Havana", "2026-03-07T12:00:00Z", []string{"2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"}},
		"midnight exists twice":          {"@daily", "America/Havana", "2026-10-31T12:00:00Z", []string{"2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"}},
	} {
		s, after := parse(t, test.schedule, test.zone), at(t, test.after)
		since := at(t, "2026-11-26T00:00:00Z")
		for i, want := range test.want {
			scheduled, found := s.Next(after, since)
			if !found || !scheduled.Equal(at(t, want)) {
				t.Errorf("%s: scheduled time %d is %v, %t, want %s", name, i, scheduled.UTC(), found, want)
				break
			}
			if latest, found := s.Latest(after, scheduled.Add(time.Second), since); !found || !latest.Equal(scheduled) {
				t.Errorf("%s: the latest scheduled time is %v, %t, want %s", name, latest.UTC(), found, want)
			}
			after = scheduled
		}
		if scheduled, found := s.Next(after, since); test.want == nil && found {
			t.Errorf("%s: scheduled time %v", name, scheduled)
		}
	}
}

func at(tb testing.TB, text string) time.Time {
	tb.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	expect.NoError(tb, err)
	return parsed
}

func TestInvalid(t *testing.T) {
	for _, test := range [][3]string{
		{"* * * *", "", "it must have five fields, or be a descriptor such as @daily: expected exactly 5 fields, found 4"},
		{"60 * * * *", "", "end of range (60) above maximum (59)"},
		{"@fortnightly", "", "unrecognized descriptor"},
		{"@every", "", "unrecognized descriptor"},
		{"", "", "empty spec string"},
		{"TZ=Europe/Berlin", "", "a zone and a space must follow TZ="},
		{"TZ= * * * * *", "", "a zone and a space must follow TZ="},
		{"TZ=Asia/Tokyo * * * * *", "Asia/Tokyo", "it names a time zone, and so does timeZone: keep one"},
		{"* * * * *", "Europe/Atlantis", `unknown time zone "Europe/Atlantis"`},
		{"* * * * *", "Local", `unknown time zone "Local"`},
		{"* * * * *", "../etc/passwd", `unknown time zone "../etc/passwd"`},
		{strings.Repeat("1,", 200) + "1 * * * *", "", "at most 256 are allowed"},
	} {
		_, err := schedule.Parse(test[0], test[1])
		if err == nil || !strings.Contains(err.Error(), test[2]) {
			t.Errorf("Parse(%q, %q): error %v, want %s", test[0], test[1], err, test[2])
		}
		if errors.Is(err, schedule.ErrZone) != strings.Contains(test[2], "unknown time zone") {
			t.Errorf("Parse(%q, %q): ErrZone is wrong", test[0], test[1])
		}
	}
}

// walk is the definition of scheduled times: it shows the clock of the zone minute by minute.
type walk struct {
	minutes, hours, days, months, weekdays map[int]bool
	anyDay, fixed                          bool
	zone                                   *time.Location
}

func (w *walk) matches(local time.Time) bool {
	day, weekday := w.days[local.Day()], w.weekdays[int(local.Weekday())]
	due := day || weekday
	if w.anyDay {
		due = day && weekday
	}
	return due && w.months[int(local.Month())] && w.hours[local.Hour()] && w.minutes[local.Minute()]
}

// times returns the scheduled times after the first time until the second. It starts to watch the clock two days earlier.
func (w *walk) times(first, last time.Time) []time.Time {
	var times []time.Time
	// Wall clocks are times in UTC here.
	wall := func(t time.Time) time.Time {
		_, offset := t.In(w.zone).Zone()
		return t.Add(time.Duration(offset) * time.Second).UTC()
	}
	start := first.Add(-48 * time.Hour)
	shown := wall(start)
	for t := start; !t.After(last); t = t.Add(time.Minute) {
		now := wall(t)
		due := w.matches(now) && (!w.fixed || now.After(shown))
		if w.fixed {
			for skipped := shown.Add(time.Minute); skipped.Before(now); skipped = skipped.Add(time.Minute) {
				due = due || w.matches(skipped)
			}
		}
		if now.After(shown) {
			shown = now
		}
		if due && t.After(first) {
			times = append(times, t)
		}
	}
	return times
}

// random returns a schedule and what it means.
func random(r *rand.Rand, zone *time.Location) (string, *walk) {
	w := &walk{zone: zone, fixed: true}
	field := func(low, high, most int, chance float64) (string, map[int]bool) {
		values := map[int]bool{}
		if r.Float64() < chance {
			for i := low; i <= high; i++ {
				values[i] = true
			}
			return "*", values
		}
		var parts []string
		for range 1 + r.IntN(most) {
			value := low + r.IntN(high-low+1)
			values[value] = true
			parts = append(parts, fmt.Sprint(value))
		}
		return strings.Join(parts, ","), values
	}
	var fields [5]string
	fields[0], w.minutes = field(0, 59, 3, 0.1)
	fields[1], w.hours = field(0, 23, 12, 0.2)
	fields[2], w.days = field(1, 31, 20, 0.7)
	fields[3], w.months = field(1, 12, 12, 0.9)
	fields[4], w.weekdays = field(0, 6, 5, 0.7)
	w.fixed = fields[0] != "*" && fields[1] != "*"
	w.anyDay = fields[2] == "*" || fields[4] == "*"
	return strings.Join(fields[:], " "), w
}

// zones returns the names of all zones.
func zones(t *testing.T) []string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	expect.NoError(t, err)
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib/time/zoneinfo.zip"))
	expect.NoError(t, err)
	defer archive.Close()
	var names []string
	for _, file := range archive.File {
		if !strings.HasSuffix(file.Name, "/") {
			names = append(names, file.Name)
		}
	}
	return names
}

// TestZones compares the scheduled times with a walk, forward and backward, around each change of the clocks of each zone
// from 2000 to 2040.
func TestZones(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	changes, times := 0, 0
	for _, name := range zones(t) {
		zone, err := time.LoadLocation(name)
		expect.NoError(t, err)
		for next := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); next.Year() < 2040; {
			_, end := next.In(zone).ZoneBounds()
			if end.IsZero() {
				break
			}
			next = end
			// Most changes are like those of the years before.
			if r.IntN(12) > 0 {
				continue
			}
			changes++
			times += compare(t, r, zone, end)
		}
	}
	if changes < 1000 || times < 10_000 {
		t.Errorf("compared %d scheduled times around %d changes: too few", times, changes)
	}
	t.Logf("compared %d scheduled times around %d changes", times, changes)
}

func compare(t *testing.T, r *rand.Rand, zone *time.Location, change time.Time) int {
	t.Helper()
	first, last := change.Add(-26*time.Hour-time.Duration(r.IntN(3600))*time.Second).Truncate(time.Minute), change.Add(30*time.Hour)
	text, w := random(r, zone)
	want := w.times(first, last)
	s := parse(t, text, zone.String())
	after := first
	for i := 0; ; i++ {
		scheduled, found := s.Next(after, first)
		if !found || scheduled.After(last) {
			if i != len(want) {
				t.Fatalf("%s in %s after %v: no scheduled time, want %v", text, zone, after.UTC(), want[i].UTC())
			}
			break
		}
		if i >= len(want) || !scheduled.Equal(want[i]) {
			t.Fatalf("%s in %s: after %v follows %v, want %v", text, zone, after.UTC(), scheduled.UTC(), want[min(i, len(want)-1):])
		}
		after = scheduled
	}
	until := last
	for i := len(want) - 1; i >= 0; i-- {
		scheduled, found := s.Latest(first, until, first)
		if !found || !scheduled.Equal(want[i]) {
			t.Fatalf("%s in %s: the latest until %v is %v, %t, want %v", text, zone, until.UTC(), scheduled.UTC(), found, want[i].UTC())
		}
		until = scheduled.Add(-time.Nanosecond)
	}
	if scheduled, found := s.Latest(first, until, first); found {
		t.Fatalf("%s in %s: %v is before all scheduled times after %v", text, zone, scheduled.UTC(), first.UTC())
	}
	return len(want)
}

func BenchmarkNext(b *testing.B) {
	now := time.Date(2026, 11, 26, 12, 0, 30, 0, time.UTC)
	for _, text := range []string{"* * * * *", "30 2 * * *", "0 0 1 1 *", "0 0 29 2 *", "0 0 30 2 *"} {
		b.Run(text, func(b *testing.B) {
			s := parse(b, text, "Europe/Berlin")
			for b.Loop() {
				s.Next(now, now)
			}
		})
	}
}

func TestDiffersFromOthersAtChangesOfTheClocks(t *testing.T) {
	from := at(t, "2026-01-01T00:00:00Z")
	for _, test := range []struct{ schedule, zone, want string }{
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z"},
		{"30 2 1 * *", "Europe/Berlin", ""},
		{"30 2 * * *", "Asia/Tokyo", ""},
		{"*/15 * * * *", "Europe/Berlin", ""},
		{"0 4 * * *", "Europe/Berlin", ""},
		{"@every 1h", "Europe/Berlin", ""},
	} {
		s := parse(t, test.schedule, test.zone)
		change, found := s.Differs(from, from.AddDate(1, 0, 0))
		if found != (test.want != "") || found && !change.Equal(at(t, test.want)) {
			t.Errorf("%s in %s: %v, %t, want %q", test.schedule, test.zone, change.UTC(), found, test.want)
		}
	}
}
