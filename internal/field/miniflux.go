package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// miniflux is a reader of feeds in Go, on PostgreSQL without an object mapper: most requests are statements in
// autocommit. Its own suite are the integration tests of its API.
var miniflux = application{name: "miniflux", version: fluxVersion, engine: "postgres", install: installMiniflux,
	suite: func(ctx context.Context, dir string, verdicts io.Writer) error {
		return withMiniflux(ctx, dir, func(f *fluxServer) error { return f.ownTests(ctx, dir, verdicts) })
	},
	crowd: func(ctx context.Context, dir string, books io.Writer) error {
		return withMiniflux(ctx, dir, func(f *fluxServer) error { return f.settingsAtOnce(ctx, books) })
	}}

const (
	fluxModule   = "miniflux.app/v2"
	fluxVersion  = "v2.2.14"
	fluxPassword = "field-password"
)

// installMiniflux builds the program and its API's tests.
func installMiniflux(ctx context.Context, dir string) error {
	tests := filepath.Join(dir, "api.test")
	if _, err := os.Stat(tests); err == nil {
		return nil
	}
	program := exec.CommandContext(ctx, "go", "install", fluxModule+"@"+fluxVersion)
	program.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := program.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(program.Args, " "), err, out)
	}
	found, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	source := filepath.Join(strings.TrimSpace(string(found)), filepath.FromSlash(fluxModule+"@"+fluxVersion))
	return command(ctx, source, "go", "test", "-mod=mod", "-c", "-o", tests, "./internal/api")
}

// A fluxServer is one that runs, with a site whose feed it can read.
type fluxServer struct{ url, site string }

// withMiniflux starts the program on the database of DATABASE_URL, and stops it behind f.
func withMiniflux(ctx context.Context, dir string, f func(*fluxServer) error) (err error) {
	site, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	pages := &http.Server{Handler: http.HandlerFunc(servePage)}
	var serving sync.WaitGroup
	serving.Go(func() { pages.Serve(site) }) // Close ends it
	defer func() { pages.Close(); serving.Wait() }()
	address, err := freeAddress()
	if err != nil {
		return err
	}
	s := &fluxServer{"http://" + address, "http://" + site.Addr().String()}
	return program{path: filepath.Join(dir, "miniflux.app"), log: filepath.Join(dir, "miniflux.log"),
		ready: s.url + "/healthcheck",
		env: []string{"LISTEN_ADDR=" + address, "RUN_MIGRATIONS=1", "CREATE_ADMIN=1", "ADMIN_USERNAME=admin",
			"ADMIN_PASSWORD=" + fluxPassword, "FETCHER_ALLOW_PRIVATE_NETWORKS=1", "POLLING_FREQUENCY=1440"},
	}.while(ctx, func() error { return f(s) })
}

// servePage is a site with a feed of twenty entries.
func servePage(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/feed.xml" {
		fmt.Fprint(w, `<html><head><title>Field</title><link rel="alternate" type="application/atom+xml" title="Feed" href="/feed.xml"></head></html>`)
		return
	}
	w.Header().Set("Content-Type", "application/atom+xml")
	fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom"><title>Field</title><id>urn:field</id><link href="http://%s/"/>`+
		`<updated>2026-01-01T00:00:00Z</updated>`, r.Host)
	for i := range 20 {
		fmt.Fprintf(w, `<entry><title>Entry %d</title><id>urn:field:%d</id><link href="http://%s/%d"/><updated>2026-01-01T00:00:00Z</updated>`+
			`<content type="html">Text %d</content></entry>`, i, i, r.Host, i, i)
	}
	fmt.Fprint(w, "</feed>")
}

// verdictLine is a test's, in what go test prints.
var verdictLine = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\S+)`)

// ownTests runs the API's integration tests. Some want the Internet: they fail where there is none, with isotap and
// without.
func (f *fluxServer) ownTests(ctx context.Context, dir string, verdicts io.Writer) error {
	tests := exec.CommandContext(ctx, filepath.Join(dir, "api.test"), "-test.v")
	tests.Env = append(os.Environ(), "TEST_MINIFLUX_BASE_URL="+f.url, "TEST_MINIFLUX_ADMIN_USERNAME=admin",
		"TEST_MINIFLUX_ADMIN_PASSWORD="+fluxPassword, "TEST_MINIFLUX_FEED_URL="+f.site+"/feed.xml", "TEST_MINIFLUX_FEED_TITLE=Field",
		"TEST_MINIFLUX_SUBSCRIPTION_TITLE=Feed", "TEST_MINIFLUX_WEBSITE_URL="+f.site+"/")
	out, err := tests.Output()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return err
	}
	all := verdictLine.FindAllSubmatch(out, -1)
	if len(all) == 0 {
		return fmt.Errorf("its tests told nothing: %s", out)
	}
	for _, m := range all {
		fmt.Fprintf(verdicts, "%s %s\n", m[2], m[1])
	}
	return nil
}

// login returns a user's client, which has a key: the password is slow to look at.
func (f *fluxServer) login(ctx context.Context, user string) (*client, error) {
	var made struct{ Token string }
	c := newClient(f.url+"/v1", password(user, fluxPassword))
	if err := c.call(ctx, http.MethodPost, "/api-keys", map[string]string{"description": "field"}, &made); err != nil {
		return nil, err
	}
	return newClient(f.url+"/v1", header("X-Auth-Token", made.Token)), nil
}

// pairs is how often two requests are sent at once.
const pairs = 200

// settingsAtOnce has two requests set two settings of one thing at once, and counts how often one of them is gone.
func (f *fluxServer) settingsAtOnce(ctx context.Context, books io.Writer) error {
	admin, err := f.login(ctx, "admin")
	if err != nil {
		return err
	}
	var made struct {
		ID     int `json:"id"`
		FeedID int `json:"feed_id"`
	}
	if err := admin.call(ctx, http.MethodPost, "/users", map[string]any{"username": "reader", "password": fluxPassword}, &made); err != nil {
		return err
	}
	reader, err := f.login(ctx, "reader")
	if err != nil {
		return err
	}
	if err := reader.call(ctx, http.MethodPost, "/feeds", map[string]any{"feed_url": f.site + "/feed.xml"}, &made); err != nil {
		return err
	}
	user, feed := fmt.Sprintf("/users/%d", made.ID), fmt.Sprintf("/feeds/%d", made.FeedID)
	for _, of := range []struct {
		what, path, read string
		client           *client
		one, two         string
		values           func(n int) (one, two any)
	}{
		{"a user's theme and language", user, user, admin, "theme", "language", func(n int) (one, two any) {
			return []string{"dark_serif", "light_serif"}[n%2], []string{"fr_FR", "en_US"}[n%2]
		}},
		{"a feed's title and crawler", feed, feed, reader, "title", "crawler", func(n int) (one, two any) {
			return fmt.Sprintf("title %d", n), n%2 == 0
		}},
	} {
		lost := 0
		for n := range pairs {
			one, two := of.values(n)
			set := func(what string, value any) func() error {
				return func() error {
					return of.client.call(ctx, http.MethodPut, of.path, map[string]any{what: value}, nil)
				}
			}
			errs := atOnce(set(of.one, one), set(of.two, two))
			got := make(map[string]any)
			if err := errors.Join(append(errs, of.client.call(ctx, http.MethodGet, of.read, nil, &got))...); err != nil {
				return err
			}
			if got[of.one] != one || got[of.two] != two {
				lost++
			}
		}
		fmt.Fprintf(books, "  %s set at once: one is gone in %d of %d\n", of.what, lost, pairs)
	}
	return nil
}
