package postgres

import (
	"slices"
	"testing"
)

func TestKeyTellsRowsApartAtEveryMoment(t *testing.T) {
	name, db := newDatabase(t, `
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN small AS int CHECK (value < 9);
CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE plain (id int PRIMARY KEY);
CREATE TABLE late (id int PRIMARY KEY DEFERRABLE);
CREATE TABLE late_with_another (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, code text NOT NULL UNIQUE);
CREATE TABLE only_unique (a int NOT NULL, b int NOT NULL, c int UNIQUE, UNIQUE (a, b));
CREATE TABLE of_some (a int NOT NULL);
CREATE UNIQUE INDEX ON of_some (a) WHERE a > 0;
CREATE TABLE computed (a text NOT NULL);
CREATE UNIQUE INDEX ON computed (lower(a));
CREATE TABLE including (a int PRIMARY KEY, b int UNIQUE);
CREATE TABLE moods (m mood PRIMARY KEY);
CREATE TABLE smalls (s small PRIMARY KEY);
CREATE TABLE floats (f float8, n numeric, c char(3), PRIMARY KEY (f, n, c));
CREATE TABLE insensitive (t text COLLATE any_case PRIMARY KEY);
CREATE TABLE intervals (i interval PRIMARY KEY);
CREATE TABLE arrays (a int[] PRIMARY KEY);
CREATE TABLE documents (j jsonb PRIMARY KEY, id int NOT NULL UNIQUE);
CREATE TABLE base (id int PRIMARY KEY);
CREATE TABLE same (PRIMARY KEY (id)) INHERITS (base);
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE parted (id int NOT NULL, at int NOT NULL) PARTITION BY RANGE (at);
CREATE TABLE low PARTITION OF parted (PRIMARY KEY (id)) FOR VALUES FROM (0) TO (10)
`)
	c := load(t, name)
	for table, want := range map[string][]string{
		"plain": {"id"}, "late": nil, "late_with_another": {"code"}, "only_unique": {"a", "b"}, "of_some": nil,
		"computed":  nil,
		"including": {"a"}, "moods": {"m"}, "smalls": {"s"}, "floats": {"f", "n", "c"}, "insensitive": nil,
		"intervals": nil, "arrays": nil,
		"documents": {"id"}, "base": {"id"}, "same": {"id"}, "parent": nil, "child": nil, "parted": nil, "low": nil,
	} {
		if got := c.Table("public", table).Key; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", table, got, want)
		}
	}
	run(t, db, "ALTER TABLE child ADD PRIMARY KEY (id)")
	reload(t, c)
	if got := c.Table("public", "parent").Key; !slices.Equal(got, []string{"id"}) {
		t.Errorf("parent of a child with the same key: %q", got)
	}
}

func TestTablesOfAnotherAccessMethodAreToldApart(t *testing.T) {
	name, _ := newDatabase(t, `
CREATE ACCESS METHOD another TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE usual (id int);
CREATE TABLE unusual (id int) USING another;
CREATE TABLE parted (id int) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10) USING another
`)
	c := load(t, name)
	for table, want := range map[string]bool{"usual": false, "unusual": true, "parted": true, "low": true} {
		if got := c.Table("public", table).OtherStorage; got != want {
			t.Errorf("%s: %v", table, got)
		}
	}
}

func TestTablesAreNotedThatWereWrittenAnew(t *testing.T) {
	name, db := newDatabase(t, `
CREATE TABLE full_vacuum (id int PRIMARY KEY);
CREATE TABLE clustered (id int PRIMARY KEY);
CREATE TABLE altered (id int);
CREATE TABLE truncated (id int);
CREATE TABLE vacuumed (id int);
CREATE TABLE grown (id int);
CREATE TABLE parted (id int) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10)
`)
	c := load(t, name)
	if got := c.Rewritten(); len(got) != 0 {
		t.Errorf("at first: %q", got)
	}
	run(t, db, `VACUUM FULL full_vacuum;
CLUSTER clustered USING clustered_pkey;
ALTER TABLE altered ALTER id TYPE bigint;
TRUNCATE truncated;
VACUUM vacuumed;
ALTER TABLE grown ADD more int DEFAULT 5;
VACUUM FULL low`)
	reload(t, c)
	want := []string{"public.altered", "public.clustered", "public.full_vacuum", "public.low",
		"public.parted", "public.truncated"}
	if got := c.Rewritten(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
