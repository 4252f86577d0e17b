package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// A client sends requests to an application. It keeps the cookies that it gets.
type client struct {
	base string
	sign func(r *http.Request) // adds what says who it is; nil for nobody
	http http.Client
}

// newClient returns a client that keeps cookies; sign may be nil.
func newClient(base string, sign func(r *http.Request)) *client {
	jar, _ := cookiejar.New(nil) // without options it cannot fail
	return &client{base: base, sign: sign, http: http.Client{Jar: jar, Timeout: time.Minute}}
}

// password returns what signs requests with a name and a password.
func password(user, word string) func(r *http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(user, word) }
}

// header returns what signs requests with a header.
func header(name, value string) func(r *http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// A refusal is an answer of 400 or above.
type refusal struct {
	request string
	status  int
	body    string
}

// Error implements error.
func (e *refusal) Error() string {
	return fmt.Sprintf("%s: status %d: %.300s", e.request, e.status, e.body)
}

// call sends a request with a JSON body, if that is not nil, and reads the JSON answer into to, if that is not nil. An
// answer of 400 or above is a [refusal].
func (c *client) call(ctx context.Context, method, path string, body, to any) error {
	var text io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = bytes.NewReader(encoded)
	}
	return c.exchange(ctx, method, path, "application/json", text, to)
}

// send posts a form, and reads the JSON answer likewise.
func (c *client) send(ctx context.Context, path string, form url.Values, to any) error {
	return c.exchange(ctx, http.MethodPost, path, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()), to)
}

func (c *client) exchange(ctx context.Context, method, path, kind string, body io.Reader, to any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", kind)
	if c.sign != nil {
		c.sign(r)
	}
	reply, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	answer, err := io.ReadAll(reply.Body)
	if err != nil {
		return err
	}
	if reply.StatusCode >= 400 {
		return &refusal{method + " " + path, reply.StatusCode, string(answer)}
	}
	if to == nil {
		return nil
	}
	if err := json.Unmarshal(answer, to); err != nil {
		return fmt.Errorf("%s %s: %w: %.300s", method, path, err, answer)
	}
	return nil
}

// A serial sends requests one after the other, and writes how each ended.
type serial struct {
	*client
	verdicts io.Writer
	sent     *int // how many were, by whatever client
}

// do sends a request, of which what is the name. One that is refused is a verdict like another; it is the suite that is
// told, and goes on.
func (s serial) do(ctx context.Context, what, method, path string, body, to any) error {
	*s.sent++
	err := s.call(ctx, method, path, body, to)
	refused := new(refusal)
	switch {
	case err == nil:
		fmt.Fprintf(s.verdicts, "%d %s: done\n", *s.sent, what)
	case errors.As(err, &refused):
		fmt.Fprintf(s.verdicts, "%d %s: refused (%d)\n", *s.sent, what, refused.status)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// A request is one of a serial suite. Its path is known when what came before has been answered.
type request struct {
	what, method string
	path         func() string
	body, made   any
}

// all sends requests in order.
func (s serial) all(ctx context.Context, requests []request) error {
	for _, r := range requests {
		if err := s.do(ctx, r.what, r.method, r.path(), r.body, r.made); err != nil {
			return err
		}
	}
	return nil
}

// at returns a path that is known beforehand.
func at(path string) func() string { return func() string { return path } }

// atOnce calls all at the same time, and returns their errors.
func atOnce(calls ...func() error) []error {
	errs := make([]error, len(calls))
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i, call := range calls {
		all.Go(func() { <-begin; errs[i] = call() })
	}
	close(begin)
	all.Wait()
	return errs
}

// unlessRefused returns the errors that are no refusals, joined.
func unlessRefused(errs []error) error {
	var others []error
	for _, err := range errs {
		if !errors.As(err, new(*refusal)) {
			others = append(others, err)
		}
	}
	return errors.Join(others...)
}

// count returns of how many objects in the list of that name a field has a value.
func (c *client) count(ctx context.Context, path, list, field string, value any) (int, error) {
	var answer map[string]json.RawMessage
	if err := c.call(ctx, http.MethodGet, path, nil, &answer); err != nil {
		return 0, err
	}
	var objects []map[string]any
	if err := json.Unmarshal(answer[list], &objects); err != nil {
		return 0, fmt.Errorf("%s of %s: %w", list, path, err)
	}
	there := 0
	for _, o := range objects {
		if o[field] == value {
			there++
		}
	}
	return there, nil
}

// writeBooks writes what a program counted of pairs of requests: a JSON object behind "books=" in its output.
func writeBooks(books io.Writer, out []byte, pairs int) error {
	_, text, ok := strings.Cut(string(out), "books=")
	var counted map[string]int
	if err := json.Unmarshal([]byte(text), &counted); !ok || err != nil {
		return fmt.Errorf("count in its books: %w: %s", err, out)
	}
	for _, what := range slices.Sorted(maps.Keys(counted)) {
		fmt.Fprintf(books, "  %s: %d of %d pairs of requests\n", what, counted[what], pairs)
	}
	return nil
}
