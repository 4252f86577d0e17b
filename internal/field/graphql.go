package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// A graph is a client of a GraphQL endpoint.
type graph struct {
	*client
	path string
}

// ask sends a query or a mutation, and reads its data into to, if that is not nil. Errors in the answer are a
// [refusal], and so is an answer that is an ErrorResult, Vendure's type of what it does not do.
func (g graph) ask(ctx context.Context, query string, variables values, to any) error {
	var answer struct {
		Data   json.RawMessage
		Errors []struct{ Message string }
	}
	if err := g.call(ctx, http.MethodPost, g.path, values{"query": query, "variables": variables}, &answer); err != nil {
		return err
	}
	if len(answer.Errors) > 0 {
		return &refusal{g.path, http.StatusOK, answer.Errors[0].Message}
	}
	if strings.Contains(string(answer.Data), `"errorCode"`) {
		return &refusal{g.path, http.StatusOK, string(answer.Data)}
	}
	if to == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Data, to); err != nil {
		return fmt.Errorf("%s: %w: %.300s", g.path, err, answer.Data)
	}
	return nil
}
