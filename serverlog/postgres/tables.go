package postgres

import (
	"context"
	"time"

	catalog "github.com/isotap/isotap/catalog/postgres"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/serverlog/wal"
)

// patience is how long a table may take to be there for others after the log told of the commit of who made it: it does
// so before. A table that is gone again costs as much.
var patience = []time.Duration{0, 5 * time.Millisecond, 30 * time.Millisecond}

// place returns the database that writes are in, and those of them that are of no table of the server's own. Files
// are looked up when they are met first: TRUNCATE, VACUUM FULL and what else writes a table anew gives it another one.
func (st *stream) place(ctx context.Context, writes []wal.Event) (string, []history.LoggedWrite, error) {
	if len(writes) == 0 {
		return "", nil, nil
	}
	database, err := st.database(ctx, writes[0].File.Database)
	if err != nil || database == "" {
		return "", nil, err
	}
	for _, pause := range patience {
		unknown := st.unknown(writes)
		if len(unknown) == 0 {
			break
		}
		time.Sleep(pause)
		known, err := st.learn(ctx, database, unknown)
		if err != nil || !known {
			return "", nil, err
		}
	}
	var out []history.LoggedWrite
	for i := range writes {
		table := st.tables[writes[i].File]
		if table.System {
			continue
		}
		l := write(&writes[i])
		l.Row.Table, l.TupleID.Leaf = table.Name, table.OID
		out = append(out, l)
	}
	return database, out, nil
}

// database returns the name of a database; empty where it is gone, or that of all databases.
func (st *stream) database(ctx context.Context, oid uint32) (string, error) {
	if name, ok := st.names[oid]; ok || oid == 0 {
		return name, nil
	}
	names, err := catalog.DatabaseNames(ctx, st.source.Conn)
	if err != nil {
		return "", err
	}
	st.names = names
	if _, ok := names[oid]; !ok {
		st.names[oid] = "" // it is not asked for again
	}
	return names[oid], nil
}

// unknown returns the files of writes whose tables are not known.
func (st *stream) unknown(writes []wal.Event) (files []wal.File) {
	met := make(map[wal.File]bool)
	for i := range writes {
		f := writes[i].File
		if _, ok := st.tables[f]; !ok && !met[f] {
			met[f] = true
			files = append(files, f)
		}
	}
	return files
}

// learn asks for the tables of files. Known says that there was somebody to ask.
func (st *stream) learn(ctx context.Context, database string, files []wal.File) (known bool, err error) {
	ask := make([]catalog.File, len(files))
	for i, f := range files {
		ask[i] = catalog.File{Space: f.Space, Node: f.Node}
	}
	tables, known, err := st.source.Databases.StoredTables(ctx, database, ask)
	if err == nil && !known && database == st.source.Conn.Target().Database {
		tables, err = catalog.StoredTables(ctx, st.source.Conn, ask)
		known = true
	}
	if err != nil || !known {
		return known, err
	}
	for _, f := range files {
		if t, ok := tables[f.Node]; ok {
			st.tables[f] = t
		}
	}
	return true, nil
}
