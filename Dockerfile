# Builds the images of Seamark with Docker. `make images` builds them without it.
#
#   docker build --target manager   --build-arg VERSION=v1.2.3 -t seamark-manager .
#   docker build --target agent     --build-arg VERSION=v1.2.3 -t seamark-agent .
#   docker build --target workloads --build-arg VERSION=v1.2.3 -t seamark-workloads .

FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY internal internal
ARG TARGETOS TARGETARCH VERSION=unknown
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -tags=grpcnotrace \
    -ldflags "-s -w -X main.version=$VERSION" -o /out/ ./cmd/seamark-manager ./cmd/seamark-agent ./cmd/seamark-workloads

FROM scratch AS manager
COPY --from=build /out/seamark-manager /seamark-manager
USER 65532:65532
ENTRYPOINT ["/seamark-manager"]

FROM scratch AS workloads
COPY --from=build /out/seamark-workloads /seamark-workloads
USER 65532:65532
ENTRYPOINT ["/seamark-workloads"]

# User 0, because root owns the socket of the container runtime. The DaemonSet drops all capabilities.
FROM scratch AS agent
COPY --from=build /out/seamark-agent /seamark-agent
USER 0:0
ENTRYPOINT ["/seamark-agent"]
