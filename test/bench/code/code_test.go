// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
)

const text = `goos: linux
BenchmarkDecide/3_pods-2     	  100	   9000 ns/op	   1.5 x_of_encoding	 1 B/op	 2 allocs/op
BenchmarkDecide/110_pods-2   	  100	  20000 ns/op	   2.5 x_of_encoding	 1 B/op	 2 allocs/op
BenchmarkDesired-2           	  100	   3000 ns/op	   1.2 x_of_encoding	 1 B/op	 2 allocs/op
BenchmarkNode-2              	  100	 800000 ns/op	   0.5 x_of_encoding	 1 B/op	 2 allocs/op
BenchmarkCheck/10_rivals-2   	  100	   4000 ns/op	   10 x_of_alone	 1 B/op	 2 allocs/op
BenchmarkCheck/100_rivals-2  	  100	  25000 ns/op	   70 x_of_alone	 1 B/op	 2 allocs/op
BenchmarkCheck/1000_rivals-2 	  100	  25000 ns/op	   70 x_of_alone	 1 B/op	 2 allocs/op
BenchmarkCheck/all_of_1000-2 	  100	  30000 ns/op	   80 x_of_alone	 1 B/op	 2 allocs/op
BenchmarkPodWithoutSet-2     	  100	   1000 ns/op	   0.2 x_of_copy	 0 B/op	 0 allocs/op
BenchmarkPodWithoutJob-2     	  100	   1000 ns/op	   0.2 x_of_copy	 0 B/op	 0 allocs/op
BenchmarkPodWithoutSidecarSet-2	  100	   1000 ns/op	   0.2 x_of_copy	 0 B/op	 0 allocs/op
BenchmarkWorker-2            	  100	   1000 ns/op	  999 probes/s	 1.6 x_of_plain_loop
PASS
`

func TestParseReadsRatios(t *testing.T) {
	out, err := parse(text)
	expect.NoError(t, err)
	got := out.Results[1]
	if got.Value != 20 || got.Ratio() != 2.5 {
		t.Errorf("%s: %v µs, ratio %v, want 20 µs, ratio 2.5", got.Name, got.Value, got.Ratio())
	}
	expect.Success(t, Measures()[0].Check(out))
}

func TestParseNamesMissingBenchmark(t *testing.T) {
	_, err := parse(strings.ReplaceAll(text, "BenchmarkDesired", "BenchmarkOther"))
	if err == nil || !strings.Contains(err.Error(), "BenchmarkDesired") {
		t.Errorf("error %v, want one that names BenchmarkDesired", err)
	}
}
