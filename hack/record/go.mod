module github.com/seamark-dev/seamark/hack/record

go 1.26.8

require (
	github.com/creack/pty v1.1.24
	github.com/hinshun/vt10x v0.0.0-20220301184237-5011da428d02
)

require github.com/google/go-cmp v0.7.0
