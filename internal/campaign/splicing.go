//go:build linux

package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"

	"github.com/isotap/isotap/dbms"
)

var (
	splicedTexts   = regexp.MustCompile(`(\d+) texts, -seed`)
	splicedDiffers = regexp.MustCompile(`(\d+) sessions, (\d+) differ`)
)

// runSplicing is the campaign that has hostile texts said to a server directly and through isotap, and compares
// replies, tables and what the server was given: the tests of internal/splicing, longer.
func runSplicing(ctx context.Context, j *job) error {
	test := map[dbms.Engine]string{dbms.MariaDB: "^TestMariaDBTexts$",
		dbms.PostgreSQL: "^TestPostgreSQLTexts$"}[j.family.name]
	for _, ok := j.next(ctx); ok && !j.row.bad(); _, ok = j.next(ctx) {
		out, err := exec.CommandContext(ctx, "go", "test", "github.com/isotap/isotap/internal/splicing", "-run", test,
			"-count=1", "-timeout", "4h", "-v",
			"-texts", strconv.Itoa(j.texts), "-seed", strconv.FormatUint(j.seed, 10)).CombinedOutput()
		texts, differs := splicedTexts.FindSubmatch(out), splicedDiffers.FindSubmatch(out)
		if texts != nil {
			n, _ := strconv.ParseInt(string(texts[1]), 10, 64)
			j.count(func(r *row) { r.operations += n })
		}
		if err != nil && ctx.Err() == nil {
			j.wrong("%v\n%s", err, out)
		} else if differs == nil && ctx.Err() == nil {
			return fmt.Errorf("the tests of splicing did not say what they saw:\n%s", out)
		}
	}
	return nil
}
