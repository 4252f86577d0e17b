package mysql

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// RowIDDefinition is the definition of isotap_rowid in CREATE TABLE and in ALTER TABLE ... ADD COLUMN,
// name included. Its default is for the rows that no rewritten INSERT gives an id.
const RowIDDefinition = rewrite.RowIDColumn + " VARBINARY(64) INVISIBLE DEFAULT (lower(hex(uuid_short())))"

// DefaultWListBytes is the size of isotap_wlist in tables that are created through the proxy.
const DefaultWListBytes = 255

// WListDefinition is the definition of isotap_wlist for lists of up to bytes bytes; 0 for unbounded
// ones. The default is binary because a session's character_set_connection could be UTF-16; MySQL lets a
// BLOB have it as an expression only.
func WListDefinition(bytes int) string {
	if bytes == 0 {
		return rewrite.WListColumn + " LONGBLOB INVISIBLE DEFAULT (_binary'0')"
	}
	return rewrite.WListColumn + " VARBINARY(" + strconv.Itoa(bytes) + ") INVISIBLE DEFAULT _binary'0'"
}

// createTable adds the auxiliary columns to a CREATE TABLE with a list of definitions. TiDB's parser
// does not know much of MariaDB's DDL, so this one rests on the lexer alone. A table made LIKE another
// gets its columns from there.
func (pl *planner) createTable() error {
	st := pl.st
	pl.plan.Observation = history.Nothing
	i := st.definitionList()
	end := st.last() + 1
	closing := st.group(i)
	if st.find(i, end, -1, "SELECT") >= 0 || st.find(i, end, 0, "VALUES", "TABLE") >= 0 {
		return refusal(history.ReasonCreateTableSelect)
	}
	if closing < 0 || !pl.definitions(i, closing, end) {
		return nil
	}
	rowID, wList := RowIDDefinition, WListDefinition(DefaultWListBytes)
	if pl.session.Dialect == TiDB {
		rowID, wList = TiDBRowIDDefinition, TiDBWListDefinition(DefaultWListBytes)
		pl.plan.Schema.Created = pl.created()
	}
	pl.insertAt(st.Tokens[closing].Start, text(", "+rowID+", "+wList))
	return nil
}

// created returns the table that a CREATE TABLE makes and its columns; nil when they cannot be told.
func (pl *planner) created() []string {
	if len(pl.plan.Schema.Changed) != 1 {
		return nil
	}
	tree, err := pl.parse()
	if err != nil {
		return nil
	}
	n, ok := tree.(*ast.CreateTableStmt)
	if !ok {
		return nil
	}
	names := []string{pl.plan.Schema.Changed[0].Table}
	for _, c := range n.Cols {
		names = append(names, c.Name.Name.O)
	}
	return names
}

// definitionList returns the token behind the table's name in a CREATE TABLE.
func (st *statement) definitionList() int {
	i := 2
	if st.is(1, "OR") {
		i += 2
	}
	if st.is(i, "IF") {
		i += 3
	}
	i++ // the table's name
	if st.mark(i, ".") {
		i += 2
	}
	return i
}

// commentedOptions reports whether the statement's executable comments are nothing but options of a table that
// CREATE TABLE makes, as mysqldump and sysbench write them: /*! ENGINE = InnoDB */, and on TiDB attributes of
// columns and keys, as it writes them itself: /*T![clustered_index] CLUSTERED */.
func (st *statement) commentedOptions(d Dialect) bool {
	if !st.is(0, "CREATE") || st.Separated || !st.is(1, "TABLE") && !(st.is(1, "OR") && st.is(3, "TABLE")) {
		return false
	}
	open := st.definitionList()
	closing := st.group(open)
	if closing < 0 || st.executable() < st.Tokens[closing].End &&
		(d != TiDB || !st.commentedAttributes(open, closing)) {
		return false
	}
	options := strings.ToLower(st.SQL[st.Tokens[closing].End:])
	return !unlikeOptions.MatchString(options) &&
		len(engineOption.FindAllString(options, -1)) == len(innoDBOption.FindAllString(options, -1))
}

// commentedAttributes reports whether the executable comments up to the end of the definitions are nothing but
// attributes, within them.
func (st *statement) commentedAttributes(open, closing int) bool {
	if st.executable() < st.Tokens[open].Start {
		return false
	}
	for i := open; i < closing; i++ {
		blank := tidbAttribute.ReplaceAllString(st.SQL[st.Tokens[i].End:st.Tokens[i+1].Start], "")
		if strings.Contains(blank, "!") {
			return false
		}
	}
	return true
}

var (
	tidbAttribute = regexp.MustCompile(`/\*T!(\[\w+(,\w+)*\])?[\w\s=]*(\(\d+(,\s*\d+)?\))?\s*\*/`)
	unlikeOptions = regexp.MustCompile(`\b(select|with|values|table|as|system|versioning)\b`)
	engineOption  = regexp.MustCompile(`\bengine\b`)
	innoDBOption  = regexp.MustCompile("\\bengine\\s*=?\\s*['`\"]?innodb\\b")
)

// definitions reports whether the group of tokens defines columns of an InnoDB table that isotap can add
// its own to.
func (pl *planner) definitions(open, closing, end int) bool {
	st := pl.st
	if closing == open+1 || st.is(open+1, "LIKE") || st.mark(open+1, "(") || st.mark(closing+1, "(") ||
		versioned(st, end) || st.mentions(rewrite.RowIDColumn) || st.mentions(rewrite.WListColumn) {
		return false
	}
	engine := st.find(closing, end, 0, "ENGINE")
	if engine < 0 {
		return true
	}
	if engine++; st.mark(engine, "=") {
		engine++
	}
	return engine < end && strings.EqualFold(strings.Trim(st.tok(engine), "`'\""), "InnoDB")
}

// versioned reports whether the table keeps old versions of its rows, where every tag would show.
func versioned(st *statement, end int) bool {
	return st.find(0, end, -1, "VERSIONING") >= 0
}

// TiDBRowIDDefinition is [RowIDDefinition] for TiDB, which has no invisible columns, and few functions
// that may be a default.
const TiDBRowIDDefinition = rewrite.RowIDColumn + " VARBINARY(64) DEFAULT (uuid())"

// TiDBWListDefinition is [WListDefinition] for TiDB. Unbounded lists are not to be had: a BLOB has no
// default there.
func TiDBWListDefinition(bytes int) string {
	if bytes == 0 {
		bytes = maxTiDBWList
	}
	return rewrite.WListColumn + " VARBINARY(" + strconv.Itoa(bytes) + ") DEFAULT '0'"
}

// maxTiDBWList stands in for an unbounded list: room for some 2,000 tags.
const maxTiDBWList = 32 << 10
