module github.com/seamark-dev/seamark/hack/sbom

go 1.26.8

require (
	github.com/CycloneDX/cyclonedx-go v0.12.0
	github.com/google/go-cmp v0.7.0
	github.com/package-url/packageurl-go v0.1.7
)
