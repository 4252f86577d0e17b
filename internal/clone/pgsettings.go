package clone

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// settle gives the copy what PostgreSQL keeps about a database and not in it: rights (GRANT ... ON DATABASE) and
// settings (ALTER DATABASE ... SET). The server's own files hold neither.
func (p *pgCopying) settle(ctx context.Context, name string) error {
	if err := p.copyRights(ctx, name); err != nil {
		return err
	}
	return p.copySettings(ctx, name)
}

// copyRights grants on the copy what is granted on the source. Where nothing was ever granted or revoked there, the
// copy is as it has to be.
func (p *pgCopying) copyRights(ctx context.Context, name string) error {
	rows, err := p.conn.Query(ctx, `SELECT CASE r.grantee WHEN 0 THEN 'PUBLIC'
				ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(r.grantee)) END,
			string_agg(r.privilege_type, ', ')
		FROM pg_catalog.pg_database d, LATERAL pg_catalog.aclexplode(d.datacl) r
		WHERE d.datname = $1 GROUP BY 1`, p.source)
	if err != nil {
		return err
	}
	var to, privileges string
	var grants []string
	_, err = pgx.ForEachRow(rows, []any{&to, &privileges}, func() error {
		grants = append(grants, "GRANT "+privileges+" ON DATABASE "+name+" TO "+to)
		return nil
	})
	if err != nil || len(grants) == 0 {
		return err
	}
	for _, text := range append([]string{"REVOKE ALL ON DATABASE " + name + " FROM PUBLIC"}, grants...) {
		if _, err := p.conn.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// noSetting are the SQLSTATEs of settings that are left out. The login may not set it: as a rule it is about how the
// server works, and no program sees it. Or its name or value is none, and it has no effect in the source either.
var noSetting = []string{insufficientPrivilege, "42704", "22023"}

// copySettings copies the settings of the database, and those of roles in it.
func (p *pgCopying) copySettings(ctx context.Context, name string) error {
	rows, err := p.conn.Query(ctx, `SELECT CASE s.setrole WHEN 0 THEN 'DATABASE '
				ELSE 'ROLE ' || pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(s.setrole)) || ' IN DATABASE ' END, c
		FROM pg_catalog.pg_db_role_setting s JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase,
			LATERAL unnest(s.setconfig) c
		WHERE d.datname = $1`, p.source)
	if err != nil {
		return err
	}
	var of, setting string
	var settings [][2]string
	if _, err = pgx.ForEachRow(rows, []any{&of, &setting}, func() error {
		settings = append(settings, [2]string{of, setting})
		return nil
	}); err != nil {
		return err
	}
	for _, s := range settings {
		if err := p.set(ctx, "ALTER "+s[0]+name, s[1]); err != nil && !slices.Contains(noSetting, sqlState(err)) {
			return err
		}
	}
	return nil
}

// lists are the settings whose values are lists of names in quotes: a literal would be one name.
var lists = []string{"search_path", "temp_tablespaces", "local_preload_libraries", "session_preload_libraries"}

// set sets "name=value" as the server keeps it. A list is not taken apart: a transaction of ours has it, and the
// setting is taken from there.
func (p *pgCopying) set(ctx context.Context, alter, setting string) error {
	name, value, _ := strings.Cut(setting, "=")
	alter += " SET " + pgx.Identifier(strings.Split(name, ".")).Sanitize()
	if !slices.Contains(lists, name) {
		_, err := p.conn.Exec(ctx, alter+" TO '"+strings.ReplaceAll(value, "'", "''")+"'")
		return err
	}
	return pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_catalog.set_config($1, $2, true)", name, value); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, alter+" FROM CURRENT")
		return err
	})
}
