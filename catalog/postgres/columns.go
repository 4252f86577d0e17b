package postgres

import (
	"regexp"
	"strconv"

	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// isotapsTypes are the types of isotap's columns: others of these names are not isotap's.
var isotapsTypes = map[string]string{rewrite.RowIDColumn: "uuid", rewrite.WListColumn: "bytea"}

// isotaps says of a table what it has of isotap's columns. The rows of a family are all known by them, or none is.
func (b *builder) isotaps(t *sqlpostgres.Table, r *relation, family []uint32) {
	if len(r.ours) == 0 {
		return
	}
	t.Exposed, t.Stored = true, r.stored
	if t.View || t.Materialized {
		return
	}
	for _, oid := range family {
		member := b.relations.get(oid)
		if member == nil || !member.instrumented() {
			return
		}
	}
	t.Instrumented = true
	t.WListBytes, _ = wListBytes(r.ours[rewrite.WListColumn])
}

// instrumented reports whether each new row gets its id and its first tag.
func (r *relation) instrumented() bool {
	for column := range isotapsTypes {
		if !isPreset(column, r.ours[column]) {
			return false
		}
	}
	return true
}

// isPreset reports whether one of isotap's columns has its default, which it is given as the server prints it.
func isPreset(column, preset string) bool {
	if column == rewrite.WListColumn {
		_, ok := wListBytes(preset)
		return ok
	}
	return preset != ""
}

// tagDefault is the default of isotap_wlist as the server prints it: what it is cut to is how long lists may grow.
var tagDefault = regexp.MustCompile(`^substr\(\(int8send\(txid_current\(\)\) \|\| pg_lsn_send\(pg_current_wal_insert_lsn\(\)\)\), 1, (\d+)\)$`)

// wListBytes reads the default of isotap_wlist; 0: lists are not bounded.
func wListBytes(preset string) (n int, ok bool) {
	m := tagDefault.FindStringSubmatch(preset)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || n >= unboundedWList {
		return 0, err == nil
	}
	return n, true
}

// unboundedWList is a length that no list has: a value has at most 1 GiB.
const unboundedWList = 1 << 30
