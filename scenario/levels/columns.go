package levels

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/engine"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/runner"
)

// A Column is an isolation level, with the settings that make two of it.
type Column struct {
	Level    history.Level
	Settings scenario.Settings
	Default  bool // sessions begin with it
	title    []string
}

// name is the column's level and settings.
func (c *Column) name() string {
	if len(c.Settings) == 0 {
		return c.Level.String()
	}
	return c.Level.String() + " with " + c.Settings.String()
}

// The settings by which a level is two, and their values.
const (
	snapshotIsolation = "innodb_snapshot_isolation"
	txnMode           = "tidb_txn_mode"
)

// Columns are a server's levels, weakest first, or those asked for. A level that it does not have is an error.
func Columns(on *runner.Runner, asked []history.Level) ([]Column, error) {
	has := on.Levels()
	for _, l := range asked {
		if !slices.Contains(has, l) {
			return nil, fmt.Errorf("%s has no level %s of its own: it has %s", on.Server.Engine, l, listed(has))
		}
	}
	if len(asked) > 0 {
		has = slices.DeleteFunc(slices.Clone(has), func(l history.Level) bool { return !slices.Contains(asked, l) })
	}
	facts := on.Facts()
	var all []Column
	for _, l := range has {
		all = append(all, variants(&facts, l)...)
	}
	return all, nil
}

// variants are the columns of a level.
func variants(f *engine.Facts, l history.Level) []Column {
	level := strings.Fields(l.String())
	begins := f.Level == l || l == history.ReadCommitted && f.Level == history.ReadUncommitted &&
		f.Server.Engine == dbms.PostgreSQL // where the one is the other
	if !f.Conflicts || f.Server.Engine == dbms.MariaDB && l < history.RepeatableRead { // which reads no transaction's snapshot
		return []Column{{Level: l, Default: begins, title: level}}
	}
	if f.Server.Engine == dbms.MariaDB {
		return []Column{
			{l, scenario.Settings{snapshotIsolation: "OFF"}, begins && !f.Server.SnapshotIsolation, level},
			{l, scenario.Settings{snapshotIsolation: "ON"}, begins && f.Server.SnapshotIsolation,
				append(slices.Clone(level), "+ snapshot", "isolation")},
		}
	}
	return []Column{
		{l, scenario.Settings{txnMode: "pessimistic"}, begins && !f.Optimistic, append(slices.Clone(level), "pessimistic")},
		{l, scenario.Settings{txnMode: "optimistic"}, begins && f.Optimistic, append(slices.Clone(level), "optimistic")},
	}
}

func listed(levels []history.Level) string {
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = l.String()
	}
	return strings.Join(names, ", ")
}
