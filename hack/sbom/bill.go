// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/package-url/packageurl-go"
)

// newBill returns the bill of a program. sum is the SHA-256 sum of the file in hexadecimal digits.
func newBill(info *debug.BuildInfo, name, version, sum string) (*cyclonedx.BOM, error) {
	program := cyclonedx.Component{
		BOMRef: "program", Type: cyclonedx.ComponentTypeApplication, Name: name, Version: version,
		PackageURL: packageURL(info.Main.Path, version, strings.TrimPrefix(strings.TrimPrefix(info.Path, info.Main.Path), "/")),
		Hashes:     hashes(sum),
		Properties: settings(info),
	}
	standard := strings.TrimPrefix(info.GoVersion, "go")
	components := []cyclonedx.Component{library("std", standard, "")}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		sum, err := moduleSum(module)
		if err != nil {
			return nil, err
		}
		components = append(components, library(module.Path, module.Version, sum))
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	refs := make([]string, 0, len(components))
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bill := cyclonedx.NewBOM()
	bill.Metadata = &cyclonedx.Metadata{Component: &program}
	bill.Components = &components
	bill.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return bill, nil
}

// library returns the component of a module.
func library(module, version, sum string) cyclonedx.Component {
	url := packageURL(module, version, "")
	return cyclonedx.Component{
		BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: module, Version: version,
		PackageURL: url, Hashes: hashes(sum),
	}
}

// packageURL returns the package URL of a module, or of a package in it.
func packageURL(module, version, subpath string) string {
	namespace, name := path.Split(module)
	return packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, version, nil, subpath).ToString()
}

func hashes(sum string) *[]cyclonedx.Hash {
	if sum == "" {
		return nil
	}
	return &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}}
}

// moduleSum returns the hash of a module in hexadecimal digits. In go.sum and in programs, it is "h1:"
// and the sum in base64.
func moduleSum(module *debug.Module) (string, error) {
	encoded, found := strings.CutPrefix(module.Sum, "h1:")
	if !found {
		return "", fmt.Errorf("module %s %s: hash %q is invalid: must be h1: and a sum in base64", module.Path, module.Version, module.Sum)
	}
	sum, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil && len(sum) != sha256.Size {
		err = errors.New("not a SHA-256 sum")
	}
	if err != nil {
		return "", fmt.Errorf("module %s %s: hash %q: %w", module.Path, module.Version, module.Sum, err)
	}
	return hex.EncodeToString(sum), nil
}

// settings returns the platform of the program.
func settings(info *debug.BuildInfo) *[]cyclonedx.Property {
	var properties []cyclonedx.Property
	for _, setting := range info.Settings {
		switch setting.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED":
			properties = append(properties, cyclonedx.Property{Name: "cdx:gomod:build:env:" + setting.Key, Value: setting.Value})
		}
	}
	return &properties
}

func sha256File(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("hash %s: %w", name, err)
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("hash %s: %w", name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
