# docker build -t isotap .
# docker run -p 3306:3306 -v recording:/recording isotap \
#   proxy --listen 0.0.0.0:3306 --upstream mysql://user:password@db/shop --recording /recording
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN make build VERSION="$VERSION" && mkdir /recording

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /src/bin/isotap /usr/local/bin/isotap
# The image has no shell to make the directory with, and its user may not.
COPY --from=build --chown=nonroot:nonroot /recording /recording
USER nonroot:nonroot
VOLUME /recording
EXPOSE 3306
ENTRYPOINT ["/usr/local/bin/isotap"]
CMD ["--help"]
