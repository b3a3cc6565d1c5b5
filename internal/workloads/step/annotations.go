// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// longestPull is the maximum of timeoutSeconds of an ImagePullJob.
const longestPull = 86400

// pullOptions are the annotations and fields of a set about pulls.
type pullOptions struct {
	parallelism     intstr.IntOrString
	timeout         int32
	minUpdatedReady int
}

// CheckAnnotations returns an error that names the first annotation of a set about pulls that is invalid.
func CheckAnnotations(annotations map[string]string) *field.Error {
	_, err := pullOptionsOf(annotations, nil, 0)
	return err
}

// pullOptionsOf reads the annotations of a set with so many pods. The fields of the strategy, which its CRD has checked, are
// their defaults, as in OpenKruise. An error names the annotation, its value and what is allowed.
func pullOptionsOf(annotations map[string]string, strategy *pub.InPlaceUpdateStrategy, total int) (pullOptions, *field.Error) {
	if strategy == nil {
		strategy = &pub.InPlaceUpdateStrategy{}
	}
	options := pullOptions{
		parallelism: ptr.Deref(strategy.ImagePreDownloadParallelism, intstr.FromInt32(1)),
		timeout:     ptr.Deref(strategy.ImagePreDownloadTimeoutSeconds, pullTimeout),
	}
	minUpdatedReady := ptr.Deref(strategy.ImagePreDownloadMinUpdatedReadyPods, intstr.IntOrString{})
	path := field.NewPath("metadata", "annotations")
	invalid := func(key, allowed string) *field.Error {
		return field.Invalid(path.Key(key), annotations[key], "must be "+allowed)
	}
	if text, found := annotations[v1alpha1.PreDownloadParallelismKey]; found {
		options.parallelism = intstr.Parse(text)
		if n, err := intstr.GetScaledValueFromIntOrPercent(&options.parallelism, math.MaxInt32, true); err != nil || n < 1 || n > math.MaxInt32 {
			return options, invalid(v1alpha1.PreDownloadParallelismKey, "a number, at least 1, or a percentage of the nodes, 1% to 100%")
		}
	}
	if text, found := annotations[v1alpha1.PreDownloadTimeoutKey]; found {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil || seconds < 1 || seconds > longestPull {
			return options, invalid(v1alpha1.PreDownloadTimeoutKey, fmt.Sprintf("a number of seconds, 1 to %d", longestPull))
		}
		options.timeout = int32(seconds)
	}
	if text, found := annotations[v1alpha1.PreDownloadMinUpdatedReadyKey]; found {
		minUpdatedReady = intstr.Parse(text)
		percent, err := intstr.GetScaledValueFromIntOrPercent(&minUpdatedReady, 100, true)
		if err != nil || percent < 0 || minUpdatedReady.Type == intstr.String && percent > 100 {
			return options, invalid(v1alpha1.PreDownloadMinUpdatedReadyKey, "a number, at least 0, or a percentage of the pods, 0% to 100%")
		}
	}
	options.minUpdatedReady, _ = intstr.GetScaledValueFromIntOrPercent(&minUpdatedReady, total, true)
	return options, nil
}
