package postgres

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
	"github.com/multigres/multigres/go/common/parser/ast"
)

// A Plan says how one statement of a [Script] is observed. It is immutable once built: plans are cached by text and
// shared between sessions.
type Plan struct {
	rewrite.Statement
	Result  Result
	Txn     TxnEffect
	Session SessionEffect
	Schema  SchemaEffect
	// Copied says how the rows of a COPY FROM can be read once they are committed; nil where they cannot.
	Copied *Copied
	// ExactOfNone says that the statement is exact if it changes no row, and inexact for nothing but what is open of
	// the rows that it changes.
	ExactOfNone bool
	// ofLiterals says that what was added has literals of the text: a text with others has another script.
	ofLiterals bool
}

// HiddenColumns is the number of columns that the plan adds to the result set.
func (p *Plan) HiddenColumns() int { return rewrite.HiddenColumns(p.Result.Reply, p.Result.Sources) }

// Result says how the reply becomes the client's, and which identities it carries. Of a DECLARE it says that of what is
// fetched.
type Result struct {
	Reply rewrite.Reply
	// Sources are the tables behind the identity columns, in their order.
	Sources []Source
	// Tag is what the client's command tag begins with, before the number of rows, where it is another statement that
	// goes upstream: a SELECT that holds the client's. Empty: the server's tag is the client's.
	Tag string
	// AtOnce says that the plan holds only if all rows are fetched at once: for a client that may leave some unfetched
	// the server could read less.
	AtOnce bool
	// HasColumn says that the client's result surely has a column of its own: the text has one that is no star.
	HasColumn bool
}

// A Source is a base table whose identities a result set carries.
type Source struct {
	Table string // history.Row.Table
	// Array says that a row carries the identities of many rows of the table, in one column: an array, or NULL.
	// Otherwise it carries one identity, in as many columns as Physical has items.
	Array bool
	// Limit is the most identities that an array can hold: one that is full may lack some. 0: no bound.
	Limit int
	// Whole says that whatever row there is carries all of the array: without a row, or with NULLs alone, it is not
	// known what was read.
	Whole bool
	// Joint says, if it is more than 1, that so many sources share the column, this one and those behind it: of an
	// array each element tells of one. They have -1, and take no column.
	Joint int
	// Beside says that the array is of the rows that a subquery read beside a row of the result. Where it is full, or
	// an element of it has [MaxBeside] identities, it may lack some.
	Beside bool
	// Marked says that the array has [Lacking] wherever that is so, however many identities it has.
	Marked bool
	// Physical is what identifies a version.
	Physical *Physical
	// Kind is what the part of the statement does that writes the table; Other: what the statement does.
	Kind history.Kind
	// Present says that the source is no table but one column, which is NULL in a row that is none of the client's:
	// there is one where the client's result has none.
	Present bool
	// Order says, if it is not 0, that the source is no table but so many columns: the texts of what the rows are
	// ordered by ([rewrite.Predicate].Order).
	Order int
}

// Columns is the number of columns that the source takes of a row.
func (s Source) Columns() int {
	switch {
	case s.Joint < 0:
		return 0
	case s.Order > 0:
		return s.Order
	case s.Array, s.Present:
		return 1
	}
	return len(s.Physical.Items)
}

// ElementSeparator stands between the identities in one element of an array, and Lacking in the place of those that
// were not collected.
const (
	ElementSeparator = ";,"
	Lacking          = "*"
)

// A Physical says what identifies a row's version.
type Physical struct {
	// Items are each a column, in this order; of an array each element is a text of them, separated by semicolons, the
	// key's values escaped as in a row's id. An element may hold several such texts, with [ElementSeparator] between
	// them, or none.
	Items []Item
	// Types are those of the columns that are the key's own (ItemKeyInt and its kind), as the server spells them, with
	// their collations: a statement that was prepared with other ones fails.
	Types []string
	// Leaves are the names of tables by oid (ItemTable), where Source.Table alone does not name the row: those that
	// inherit from it. Nil: it does.
	Leaves map[uint32]string
	// OID is the table's, where no item tells which one holds the version.
	OID uint32
}

// An Item is one column of what identifies a row's version.
type Item uint8

const (
	// ItemTable is tableoid: the table that holds the version.
	ItemTable Item = iota
	// ItemTID and ItemXID are ctid and xmin of the version that was read, or that a DELETE replaced.
	ItemTID
	ItemXID
	// ItemNewTID and ItemNewXID are those of the version that a write left. NULL: it left none.
	ItemNewTID
	ItemNewXID
	// ItemKeyInt and the three below are a column of the primary key: an integer, a text, a uuid, or for any other
	// type the hexadecimal digits of its binary form. There is one item for each of its columns.
	ItemKeyInt
	ItemKeyText
	ItemKeyUUID
	ItemKeyHex
	// ItemOldKeyChanged is true where an UPDATE gave the row another key.
	ItemOldKeyChanged
	// ItemInserted is true where INSERT ... ON CONFLICT inserted the row, and false where it updated it.
	ItemInserted
	// ItemAction is what MERGE did to the row: INSERT, UPDATE or DELETE.
	ItemAction
	// ItemLSN is the write-ahead log's position after the write.
	ItemLSN
	// ItemTag is the last tag of isotap_wlist in hexadecimal digits: that of the version that was read, or that a
	// DELETE replaced. ItemNewTags are the last two of them, or the only one: that of the version which a write left,
	// and before it that of the one which it replaced.
	ItemTag
	ItemNewTags
	// ItemTxnXID is the id of the transaction, in which no subtransaction has one of its own.
	ItemTxnXID
	// ItemImage is the row as a write left it, as the text of its composite type.
	ItemImage
	// ItemImageHex is the same where it stands among others in one text: the hexadecimal digits of that text in UTF-8,
	// or nothing.
	ItemImageHex
)

// TxnEffect is what the statement does to the transaction.
type TxnEffect struct {
	// Ends says that the statement ends an open transaction (COMMIT, ROLLBACK) or may (CALL, DO).
	Ends bool
	// MayRestart says that the statement may end an open transaction and begin the next one, without a trace in the
	// server's reply.
	MayRestart bool
	// Level is the level that the statement gives to the transaction that it begins or runs in: BEGIN ISOLATION LEVEL
	// and SET TRANSACTION.
	Level history.Level
	// ImportsSnapshot reports whether the transaction takes over another one's snapshot: SET TRANSACTION SNAPSHOT. What
	// it reads may be older than its beginning.
	ImportsSnapshot bool
	// Chains says that the statement, where it ends a transaction, begins the next one with the same level: AND CHAIN.
	Chains bool
	// Global is the name of a prepared transaction: PREPARE TRANSACTION (Kind Other) gives the session's own
	// transaction that name, COMMIT PREPARED and ROLLBACK PREPARED (Kind Commit and Rollback, without Ends) end the one
	// that has it.
	Global string
	// Savepoint is the name in SAVEPOINT, RELEASE SAVEPOINT and ROLLBACK TO, folded to lower case; Kind tells them
	// apart: Savepoint, Release, Rollback.
	Savepoint string
}

// Commits reports whether the statement is a COMMIT or PREPARE TRANSACTION of the session's own
// transaction.
func (p *Plan) Commits() bool {
	return p.Kind == history.Commit && p.Txn.Ends || p.Kind == history.Other && p.Txn.Global != ""
}

// SessionEffect is what the statement does to the session's state, or asks of it.
type SessionEffect struct {
	// Changes says that the statement may change what the session's own tracking rests on (isolation level, search
	// path, role, ...): ask the server again.
	Changes bool
	// Calls says that the statement may run functions of the database's own, by name or by triggers, which may do what
	// Changes says: ask the server again when one like it has run for the first time.
	Calls bool
	// Cursor is what the statement does with a cursor; nil: nothing.
	Cursor *Cursor
	// ReadsCursors says that the statement, or a function that it makes, may read a cursor by its name on the server.
	ReadsCursors bool
	// Prepared is what the statement prepares or executes by SQL; nil: nothing, or it cannot be told.
	Prepared *Prepared
}

// A Prepared is a statement that SQL prepares (PREPARE) or runs (EXECUTE).
type Prepared struct {
	Name string
	// Text is what is prepared, empty where a statement is run; Types its list of types, with its parentheses.
	Text, Types string
	From, To    int // the bytes of the client's text where the name stands
	// Within says that the statement does not run it for its rows: CREATE TABLE ... AS EXECUTE, EXPLAIN EXECUTE.
	Within bool
}

// SchemaEffect is what the statement does to tables.
type SchemaEffect struct {
	// Changes says that tables may look different afterwards: read the schema again. Changed are those that the
	// transaction itself may see otherwise until it ends.
	Changes bool
	Changed []rewrite.TableName
	// Change is what there is to be read again once the statement's transaction has ended; nil: perhaps anything.
	Change *rewrite.SchemaChange
	// Created is the table that the statement creates with isotap's columns behind the client's, and these; nil where
	// they cannot be told, or where isotap's do not show.
	Created []string
	// CreatedTemp is a temporary table that the statement creates, and its columns, which are the client's alone; nil
	// where they cannot be told.
	CreatedTemp []string
	// Open says that a star stands for columns which are not known, isotap's perhaps among them.
	Open bool
	// CreatesTemp are the temporary tables that the statement creates, folded names without a schema: from then on
	// these names may not mean the base tables.
	CreatesTemp []rewrite.TableName
	// DropsTemp are the tables that the statement drops, spelled as in CreatesTemp: if it succeeds, no temporary table
	// has such a name any more. A rollback may bring it back.
	DropsTemp []rewrite.TableName
}

// A Cursor is what a statement does with a cursor of SQL. A cursor's rows carry the identities that the plan of
// the statement tells that declared it.
type Cursor struct {
	Verb CursorVerb
	Name string // folded; empty where CLOSE means all of them
	// Binary and Hold say that the rows are in binary unless asked for otherwise, and that the cursor
	// outlives its transaction.
	Binary, Hold bool
	// Forward says that a FETCH or a MOVE goes forward: by one row, by as many as its only argument says, or, as All
	// says, to the end.
	Forward, All bool
}

// CursorVerb is what a statement does with a cursor.
type CursorVerb uint8

// The verbs.
const (
	// DeclareCursor opens it: its query is planned, and sees its snapshot, but gives no rows yet.
	DeclareCursor CursorVerb = iota
	// FetchCursor reads rows, MoveCursor passes over them.
	FetchCursor
	MoveCursor
	// CloseCursor forgets it.
	CloseCursor
)

// A Table is what the rewriter must know of one table or view.
type Table struct {
	rewrite.Table
	Columns []Column // the client's own, in order; without isotap's
	Indexes []Index
	// TellsText says that a trigger, a column's default or a view's query may ask for the text of the statement
	// that runs.
	TellsText bool
	// Unread says that nothing is known of the table: it was changed, and could not be read since.
	Unread bool
	OID    uint32 // 0 where MadeBy is set
	// MadeBy is the role that has just made the table, where all that is known of it is what the statement said. The
	// role may read it.
	MadeBy string
	// Stored are all columns in the server's order, isotap's with them; nil where there are none of isotap's.
	Stored []string
	// Spelled is the table's name as the server reads it wherever it stands: "public"."item".
	Spelled string
	// Rows is about how many rows the table had, with those that inherit from it, when the schema was read. 0: not
	// known.
	Rows int64
	// Key are the columns whose values tell the rows apart, in this order: the primary key, or where it cannot
	// (it is checked late, or equal values of it may look different) a unique index; nil when there is none.
	Key []string
	// Partitioned says that the table holds no rows itself, Root names the partitioned table at the top
	// (history.Row.Table) of a partition, and Leaves are the tables that hold a table's rows, by oid, where
	// there are others than itself: partitions and tables that inherit.
	Partitioned bool
	Root        string
	Leaves      map[uint32]string
	// OtherStorage says that some of the rows are not kept as versions that have a ctid and an xmin (an access
	// method other than heap).
	OtherStorage bool
	// Materialized and Foreign say what a table is that is no ordinary one.
	Materialized, Foreign bool
	// Bases are, of a View, tables of which each of its rows tells by their key which row it was made of. Beside is
	// the reason why there may be others that it was made of; empty where there are none.
	Bases        []Base
	OtherSources history.Reason
	// NotAgain says that a View's query must not be run once more beside the statement that reads the view: it may fail
	// for a row that the statement does not come to, or have other rows.
	NotAgain bool
	// Unlogged says that the write-ahead log does not tell of its rows.
	Unlogged bool
	// CascadeTriggers says that tables have triggers whose rows foreign keys may change along with this one's,
	// CascadeUnlogged that the write-ahead log does not tell of such tables.
	CascadeTriggers, CascadeUnlogged bool
	// Rules says that the table has rewrite rules, RowSecurity that it has row security switched on (and
	// Forced: for its owner too).
	Rules, RowSecurity, RowSecurityForced bool
}

// A Base is a table that rows of a view are made of.
type Base struct {
	Table rewrite.TableName
	Only  bool     // without those that inherit from it
	Key   []string // the view's columns that hold the values of the table's key, or NULL where there is no row of it
}

// A Column of a table.
type Column struct {
	rewrite.Column
	// Custom says that functions of the database's own may be called when a value is read or written as text: its
	// type is no enumeration, nor one that the server brings along.
	Custom bool
}

// An Index of a table.
type Index struct {
	rewrite.Index
	// Orders are the operators by whose results the index gives rows in order, as a distance.
	Orders []string
}

// Column finds a column by its name as the server spells it; nil when there is none.
func (t *Table) Column(name string) *Column { return rewrite.ColumnNamed(t.Columns, name) }

// Options change how statements are rewritten.
type Options struct {
	// StrictPlans leaves a SELECT alone when the wider select list could make the server choose another
	// plan, and with it another order, or other rows under LIMIT.
	StrictPlans bool
	// CollectFor bounds the time, from when a statement was sent, in which its aggregates collect identities. 0: two
	// seconds.
	CollectFor time.Duration
	// Columns has rows known by isotap's columns in the tables that carry them, and puts these into CREATE TABLE.
	Columns bool
	// WListBytes is how long the lists of tables created by clients may grow; 0: without bound.
	WListBytes int
	// Predicates has writes show the rows that they leave, and tells by which conditions statements choose rows.
	Predicates bool
}

// A Rewriter plans statements. It is safe for concurrent use.
type Rewriter struct {
	schema  Schema
	options Options
}

// New returns a rewriter for the tables of schema.
func New(schema Schema, o Options) *Rewriter { return &Rewriter{schema: schema, options: o} }

// exposes reports whether any table may have columns of isotap's: CREATE TABLE may be giving them to the first one.
func (r *Rewriter) exposes() bool { return r.options.Columns || r.schema.Exposes() }

// A draft is a text on its way to a script.
type draft struct {
	text       string
	toks       []pgtoken.Token
	statements []statement
	unreadable history.Reason // why the text cannot be looked at more closely
	plans      []*Plan
	// plain are the edits that hide isotap's columns, edits all of them; observes says that there are others.
	plain, edits []edit
	observes     bool
}

// A planner makes the plan of one statement.
type planner struct {
	rewriter *Rewriter
	session  Session
	st       *statement
	plan     *Plan
	edits    []edit
	ctes     []string // names that WITH gives to queries
	silent   []string // those of them whose rows are no rows of tables: they were just written, or made
	// parts are the statements of the WITH clause that write, shared the names of its queries that these read.
	parts  []*part
	shared []string
	// clause are the names of all expressions of the WITH clause whose parts write.
	clause []string
	// shares are those of them that show what they read to all that names them.
	shares *sharing
	// part is the one that the statement is; nil: it stands for itself.
	part     *part
	versions versionNames
	// tags are the lists of assignments that a tag was put before, as the client wrote them.
	tags [][]ast.Node
	// of is the query of which the statement tells what it reads, in its place: by one array. Nil: it is the client's.
	of *ast.SelectStmt
	// copies says that the statement is a copy that stands beside the client's: no plan of the client's hangs on it,
	// and it tells what its subqueries read, too. only are the relations that it tells of; nil: all.
	copies bool
	only   []string
	// listed says that a copy has a list for the sake of its subqueries, limited that what is copied is the query in
	// its FROM clause.
	listed, limited bool
	// valued says that a flat query's list has what aggregates are given in their place, with its subqueries.
	valued bool
	order  ordering // of the statement's rows, if there is a LIMIT
	// unread says that the server may read no row of a query in a FROM clause, since nothing asks for what it gives.
	unread bool
	// masked says that the text is not the client's any more: isotap's columns were taken out of it.
	masked bool
	// whole is why all of the statement has to go as it is, whatever of it could be observed; empty: it need not.
	whole history.Reason
	list  selectList // of the statement, if it is a SELECT
	// patterns reports of a LIKE whose pattern may end with a backslash whether that is asked beforehand.
	patterns func(*ast.A_Expr) bool
	// sums reports of a call whether it is of a sum that does not fail; nil: none is known.
	sums func(*ast.FuncCall) bool
}

// A refusal is the reason why a statement is opaque: its plan gets it as its Reason.
type refusal history.Reason

func (r refusal) Error() string { return history.Reason(r).String() }

// reasonOf returns the reason in an error of the planner's, which are refusals and bars.
func reasonOf(err error) history.Reason {
	switch err := err.(type) {
	case refusal:
		return history.Reason(err)
	case *queryRefusal:
		return err.reason
	}
	return history.ReasonUnparsable
}

// opaque makes p the plan of a statement that goes as it is and is not observed.
func opaque(p *Plan, reason history.Reason) {
	p.Observation, p.Reason = history.Opaque, reason
	p.Result.Reply, p.Result.Sources = rewrite.Unchanged, nil
}

// downgrade makes the plan inexact; the first reason stays, but for those of a key and of a cascade: the server's log
// may tell what these leave open, and nothing else must be open then.
func (pl *planner) downgrade(reason history.Reason) {
	if pl.plan.Observation == history.Exact || pl.plan.Observation == history.Inexact && pl.plan.Reason.YieldsTo(reason) {
		pl.plan.Observation, pl.plan.Reason = history.Inexact, reason
	}
	pl.plan.ExactOfNone = false
}

// downgradeOfSome is as downgrade, for what a statement leaves open that changes rows.
func (pl *planner) downgradeOfSome(reason history.Reason) {
	ofNone := pl.plan.Observation == history.Exact || pl.plan.ExactOfNone
	pl.downgrade(reason)
	pl.plan.ExactOfNone = ofNone
}

// nothing is the plan of a statement that reads and writes no row that could be observed.
func (pl *planner) nothing() {
	pl.plan.Observation = history.Nothing
}

// A queryRefusal says that a query must stay as it is.
type queryRefusal struct {
	node   ast.Node
	reason history.Reason
}

func (b *queryRefusal) Error() string { return b.reason.String() }

// A part is a statement of a WITH clause that writes. Its rows get one more column, an array of the identities that
// each of them has. What names the part must not see that column: it gets a query under the part's name.
type part struct {
	def      *ast.CommonTableExpr
	at       commonPlace
	number   int
	used     bool // the statement names it
	observed bool
	// names are those of the columns that it gives to what names it, types these where all are columns of tables.
	names []string
	types []outputColumn
	// query is the part as it goes upstream, calls what its plan says of that.
	query   ast.Stmt
	calls   bool
	edits   []edit
	sources []Source
}

// An edit puts text in the place of the client's bytes from start to end; most edits replace nothing.
type edit struct {
	start, end int
	text       string
	// What is put there instead of text is a copy of the client's bytes [from, to), if there are any.
	from, to int
}

// A commonPlace is where a common table expression stands: its name, and the parentheses around its statement.
type commonPlace struct{ name, opening, closing int }

// withNames are those of a WITH clause that a statement sees: of queries that read tables, and of all others.
type withNames struct{ reading, silent []string }

// reserved refuses names that could mean a column of isotap's.
func (st *statement) reserved() error {
	for i := range st.toks {
		n, ok := st.ident(i)
		escaped := !ok && st.toks[i].Kind == pgtoken.Name
		if escaped {
			n = unescaped(st.tok(i))
		}
		if strings.HasPrefix(n, rewrite.NamePrefix) || escaped && st.is(i+1, "UESCAPE") {
			return refusal(history.ReasonOwnName)
		}
	}
	return nil
}

// escapes are those of a name U&"...".
var escapes = regexp.MustCompile(`\\([0-9A-Fa-f]{4})|\\\+([0-9A-Fa-f]{6})`)

// unescaped returns what a name U&"..." means whose escapes begin with backslashes.
func unescaped(name string) string {
	_, name, _ = strings.Cut(name, `"`)
	return escapes.ReplaceAllStringFunc(name, func(s string) string {
		code, err := strconv.ParseUint(strings.TrimLeft(s, `\+`), 16, 32)
		if err != nil {
			return s
		}
		return string(rune(code))
	})
}

// A Script is the plan of one text. Scripts are shared and must not be changed.
type Script struct {
	// Statements are the plans of the text's statements in the order of their replies.
	Statements []*Plan
	// Pieces of the text that goes upstream. Nil: it goes byte for byte as the client wrote it.
	Pieces []string
	// Splices tell where Pieces depart from the client's text, in order.
	Splices []Splice

	// Plain is what goes upstream where Pieces do not, in the place of the client's text, which would show
	// isotap's columns. Nil: the client's text does.
	Plain *Script

	text  string // the client's
	model *Script
}

// RestsOnTables reports whether the script may be another one where tables or functions are others. Definitions,
// settings and what begins and ends transactions are what their texts say.
func (s *Script) RestsOnTables() bool {
	return s.Pieces != nil || s.Plain != nil || strings.Contains(s.text, rewrite.NamePrefix) ||
		slices.ContainsFunc(s.Statements, func(p *Plan) bool {
			switch p.Kind {
			case history.Begin, history.Commit, history.Rollback, history.Savepoint, history.Release, history.DDL, history.Set:
			default:
				return true
			}
			return p.Observation != history.Nothing || p.Session.Calls || p.Schema.Open || p.Schema.Created != nil
		})
}

// Model is the script after which this one was made: their texts differ in plain literals only, so that what the
// server takes or refuses of one it does of the other. Of a script that was made after none it is the script itself.
func (s *Script) Model() *Script {
	if s == nil || s.model == nil {
		return s
	}
	return s.model
}

// AppendWritten adds the client's text to b, without what would show isotap's columns.
func (s *Script) AppendWritten(b []byte) []byte {
	if s.Plain != nil {
		return s.Plain.Append(b)
	}
	return append(b, s.text...)
}

// Append adds the text that goes upstream to b.
func (s *Script) Append(b []byte) []byte {
	if s.Pieces == nil {
		return append(b, s.text...)
	}
	for _, piece := range s.Pieces {
		b = append(b, piece...)
	}
	return b
}

// A Schema tells the rewriter what the tables look like. Implementations are safe for concurrent use; the
// tables they return are never changed afterwards.
type Schema interface {
	// Table finds a table or view; nil when there is none of that name. An empty schema name finds nothing: the
	// rewriter goes through the session's search path.
	Table(schema, name string) *Table
	// Reads reports whether a role may read every column of the table, system columns included, without row
	// security coming between: what is added to its statements must not fail, or hide rows.
	Reads(role string, t *Table) bool
	// Tags reports whether a role that reads a table may write isotap_wlist there.
	Tags(role string, t *Table) bool
	// Exposes reports whether any table or view has columns of isotap's.
	Exposes() bool
	// ReadsCursors reports whether a function that the server does not bring along may read a cursor by its name.
	ReadsCursors() bool
	// Functions returns what the functions of a name are that the server does not bring along, in any schema.
	Functions(name string) FunctionKind
}

// FunctionKind says what all functions of one name are.
type FunctionKind byte

// The kinds.
const (
	NoFunction        FunctionKind = iota // there is none
	PlainFunction                         // none aggregates
	AggregateFunction                     // all aggregate, and none is answered from an end of an index
	MixedFunction                         // neither is so
	TellingFunction                       // one may ask for the text that runs, or names a column as isotap does
	FetchingFunction                      // none aggregates, and one may read a cursor by its name
)
