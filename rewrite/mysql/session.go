package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/rewrite"
)

// A Dialect is the SQL of one server of the family.
type Dialect uint8

// The dialects. They differ in syntax (RETURNING is MariaDB's only), in what hides isotap's columns
// (TiDB has no invisible ones) and in how UPDATE evaluates its assignments.
const (
	MariaDB Dialect = iota
	MySQL
	TiDB
)

// Session is what a plan depends on beside the statement's text: the settings of the client's
// session. It is comparable and part of the plan cache's key.
type Session struct {
	Dialect Dialect
	// Version is the server's, as major*10000 + minor*100 + patch: 101119, 90704. 0: not known.
	Version uint32

	Schema  string // the default schema; empty when there is none
	Charset string // character_set_client; statements in one that [Session] does not know are opaque
	// MaxPacket is max_allowed_packet in bytes. 0: not known, 1 MiB is assumed.
	MaxPacket int
	// GroupConcatMax is group_concat_max_len in bytes. 0: not known, MariaDB's default is assumed.
	GroupConcatMax int
	// TempTables names the session's temporary tables, which hide base tables: the keys of
	// [SchemaEffect].CreatesTemp of each CREATE TEMPORARY TABLE. See [AddTempTables].
	TempTables rewrite.List

	// Repeats says that plain reads are of a snapshot, so that rows can be read a second time in one statement, and
	// that what its subqueries read is not too much to be shown.
	Repeats bool
	// Lasts says that their snapshot is the transaction's own: another statement, a companion, can read it as well.
	Lasts bool

	// JoinsAll says that MariaDB leaves no LEFT JOIN out of which nothing is asked (optimizer_switch).
	JoinsAll bool

	// WriteReads says how writes read the tables of their subqueries.
	WriteReads WriteReads

	// Unpictured says that writes collect no images of their rows: the server refused a statement that does. TiDB may
	// not have a column yet, or any more, that the schema has, while it is added or dropped.
	Unpictured bool

	// The parts of sql_mode that change what a text means; see [Session.SetSQLMode].
	ANSIQuotes             bool
	NoBackslashEscapes     bool
	PipesAsConcat          bool
	Strict                 bool // what does not fit a column is an error
	SimultaneousAssignment bool
	EmptyStringIsNull      bool
	Oracle                 bool
}

// WriteReads says how writes read the tables of their subqueries.
type WriteReads uint8

const (
	// NotAgain: that is not known, or what subqueries read is not to be shown.
	NotAgain WriteReads = iota
	// ReadSnapshot: at READ COMMITTED. INSERT ... SELECT reads a snapshot of the statement's and locks nothing there, a
	// DELETE locks the rows that it finds.
	ReadSnapshot
	// ReadLocked: at REPEATABLE READ and SERIALIZABLE. All lock what they read.
	ReadLocked
)

// SetSQLMode takes over the modes that matter from the value of @@sql_mode, where the server has
// spelled combinations such as ANSI out.
func (s *Session) SetSQLMode(mode string) {
	modes := strings.Split(strings.ToUpper(mode), ",")
	s.ANSIQuotes = slices.Contains(modes, "ANSI_QUOTES")
	s.NoBackslashEscapes = slices.Contains(modes, "NO_BACKSLASH_ESCAPES")
	s.PipesAsConcat = slices.Contains(modes, "PIPES_AS_CONCAT")
	s.Strict = slices.Contains(modes, "STRICT_TRANS_TABLES") || slices.Contains(modes, "STRICT_ALL_TABLES")
	s.SimultaneousAssignment = slices.Contains(modes, "SIMULTANEOUS_ASSIGNMENT")
	s.EmptyStringIsNull = slices.Contains(modes, "EMPTY_STRING_IS_NULL")
	s.Oracle = slices.Contains(modes, "ORACLE")
}

// assumedPacket stands in for an unknown max_allowed_packet: the smallest default that any server of
// the family has had since 5.5.
const assumedPacket = 1 << 20

func (s *Session) maxPacket() int {
	if s.MaxPacket > 0 {
		return s.MaxPacket
	}
	return assumedPacket
}

// maxTempTables bounds Session.TempTables, in bytes: all tables of a session with more temporary ones are hidden.
const maxTempTables = 16 << 10

// AddTempTables returns Session.TempTables with some more temporary tables, within its bound.
func AddTempTables(tempTables rewrite.List, tables []rewrite.TableName) rewrite.List {
	for _, t := range tables {
		if t.Table != "" && len(tempTables) < maxTempTables {
			tempTables = tempTables.Add(t.Key())
		}
	}
	return tempTables
}

// DropTempTables returns Session.TempTables without tables that were dropped. One that has reached its bound stays as
// it is.
func DropTempTables(tempTables rewrite.List, tables []rewrite.TableName) rewrite.List {
	for _, t := range tables {
		if len(tempTables) < maxTempTables {
			tempTables = tempTables.Without(t.Key())
		}
	}
	return tempTables
}

// hasTempTable reports whether a temporary table of the session hides the table.
func (s *Session) hasTempTable(schema, table string) bool {
	return s.TempTables != "" && (len(s.TempTables) >= maxTempTables ||
		s.TempTables.Has(tempTableName(schema, table).Key()))
}

// tempTableName returns a table's name as Session.TempTables lists it. It folds case: to hide too much only
// costs an observation.
func tempTableName(schema, table string) rewrite.TableName {
	return rewrite.TableName{Schema: strings.ToLower(schema), Table: strings.ToLower(table)}
}

// utf8 reports whether the client's statements are UTF-8.
func (s *Session) utf8() bool { return strings.HasPrefix(strings.ToLower(s.Charset), "utf8") }

// SameInUTF8 reports whether a statement's text, or a part of it, is the same in UTF-8. The text must be lexable, as
// that of every statement with a plan is.
func (s *Session) SameInUTF8(text string) bool { return s.utf8() || ascii(text) }

// lexable reports whether a byte below 0x80 means its ASCII character everywhere in a statement, so that
// the lexer, which looks for quotes and backslashes byte by byte, sees what the server sees. In big5,
// cp932, gb18030, gbk and sjis such a byte may be the second half of a character, swe7 gives some
// another meaning, and ucs2, utf16 and utf32 have no single bytes.
func (s *Session) lexable(text string) bool {
	switch strings.ToLower(s.Charset) {
	case "utf8", "utf8mb3", "utf8mb4", "ascii", "binary", "latin1", "latin2", "latin5", "latin7",
		"cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "koi8r", "koi8u", "greek",
		"hebrew", "tis620", "dec8", "hp8", "geostd8", "keybcs2", "armscii8", "macce", "macroman",
		"euckr", "gb2312", "ujis", "eucjpms":
		return true
	case "big5", "cp932", "gb18030", "gbk", "sjis":
		return ascii(text)
	}
	return false
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// ParseVersion reads the version that a server's greeting gives: "10.11.19-MariaDB-0+deb12u1",
// "5.5.5-10.11.19-MariaDB" (as MariaDB before 11 greets clients that know MySQL only), "9.7.4",
// "8.0.11-TiDB-v8.5.0". The number is Session.Version's; 0 when there is none to read.
func ParseVersion(greeting string) (Dialect, uint32) {
	switch {
	case strings.Contains(greeting, "MariaDB"):
		return MariaDB, versionNumber(strings.TrimPrefix(greeting, "5.5.5-"))
	case strings.Contains(greeting, "TiDB"):
		_, own, _ := strings.Cut(greeting, "TiDB-v")
		return TiDB, versionNumber(own)
	}
	return MySQL, versionNumber(greeting)
}

// versionNumber reads major.minor.patch, whatever follows.
func versionNumber(s string) uint32 {
	var n uint32
	for range 3 {
		end := 0
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		part, err := strconv.ParseUint(s[:end], 10, 16)
		if err != nil {
			part = 0
		}
		n = n*100 + uint32(min(part, 9999))
		s = strings.TrimPrefix(s[end:], ".")
	}
	return n
}
