package mysql

import (
	"slices"
	"strings"
	"sync"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// A Plan says how one statement is observed. It is immutable once built: plans are cached by text and shared between
// sessions.
type Plan struct {
	rewrite.Statement
	Upstream Upstream
	Result   Result
	Writes   Writes
	Txn      TxnEffect
	Session  SessionEffect
	Schema   SchemaEffect
	// Companion is the statement that shows what this one read, where its own result cannot (DISTINCT, UNION, ...): the
	// same text in another form, with the same parameters and Reply Trimmed. Isotap runs it right after the statement,
	// in the same snapshot, and the client sees nothing of it. Of its own fields Upstream.Pieces, Params,
	// Result.Sources, Observation and Reason count; the last two are the statement's once it was read, and until then
	// the statement is opaque. Nil: there is none.
	Companion *Plan
}

// HiddenColumns is the number of columns that the plan adds to the result set.
func (p *Plan) HiddenColumns() int {
	if p.Result.Collects {
		return 1
	}
	return rewrite.HiddenColumns(p.Result.Reply, p.Result.Sources)
}

// Append adds the text that goes upstream to b, with its holes filled as literals by fill. It must not be called when
// Upstream.Pieces is nil.
func (p *Plan) Append(b []byte, fill func(b []byte, h Hole, ordinal int) []byte) []byte {
	for i := range p.Upstream.Pieces {
		if piece := &p.Upstream.Pieces[i]; piece.Hole == NoHole {
			b = append(b, piece.Text...)
		} else {
			b = fill(b, piece.Hole, piece.Ordinal)
		}
	}
	return b
}

// Upstream is what goes to the server in the place of the client's text.
type Upstream struct {
	// Pieces of the statement that goes upstream. Nil: it goes byte for byte as the client wrote it.
	Pieces []Piece
	// Plain is the statement without what isotap wants to see, on a server where SELECT * shows isotap's columns: it
	// means what the client's text would mean if they were not there. Where Pieces do not go upstream, it does in the
	// place of the client's text. Empty: there is no need.
	Plain string
	// Hidden are in order of Index; empty for a text without holes.
	Hidden []Hidden
	// Copies are the client's parameters that Hidden ones repeat. What isotap adds holds for values of their types
	// only: with others the statement must go upstream as the client wrote it, or, where it Shows, or Repeats reads and
	// not FitsOnly, with NULLs in the place of all copies.
	Copies   []Copy
	FitsOnly bool
	// Parts are the places in the text where its statements end, of which there are several, each before its semicolon,
	// the last at the end of the text. Every statement can be sent to the server by itself. Nil: the text is one
	// statement, or must not be cut.
	Parts []int
	// Counts says that Pieces give ROW_COUNT() or FOUND_ROWS() as values, where isotap's own statements came between
	// this one and the client's statement before it. A prepared statement is prepared anew for that.
	Counts bool
	// Substitutes says that Pieces do nothing else: where nothing came between, the original must go upstream.
	Substitutes bool
	// ListsColumns says that Pieces name the table's columns where the client left that to the server: when the table
	// changes, a statement prepared before must not go on meaning the old ones.
	ListsColumns bool
	// MayHideLocks says that the wider statement could lock more than the original where its reads lock (a locking
	// clause, or SERIALIZABLE inside a transaction): an index might cover the original. Such a statement must go
	// upstream unchanged, for the reason "plan".
	MayHideLocks bool
	// Repeats says that Pieces read rows a second time, which must be the same ones, without a lock: where reads are
	// not of a snapshot such a statement must go upstream unchanged, for the reason "subquery".
	Repeats bool
	// Shows says that Pieces have a ShownHole: they read again what a write's subqueries read, at the levels that
	// Session.WriteReads names. SameLocks says that this locks no more than the client's text does.
	Shows, SameLocks bool
	// LocksReads says that the write locks what its subqueries read at every level. At READ COMMITTED not what they do
	// not find, so that another evaluation may find more.
	LocksReads bool
	// Deprecated is what Pieces add to the text's expressions of which MySQL warns (1287) when it reads the statement.
	Deprecated Deprecated
}

// Deprecated counts what MySQL warns of when it reads a statement: assignments to variables, and VALUES().
type Deprecated struct{ Assignments, Values int }

// Sum returns how many warnings that are.
func (d Deprecated) Sum() int { return d.Assignments + d.Values }

// MayShow reports whether a write that Shows what its subqueries read may do so where writes read them in that way. One
// that was prepared may run at another level.
func (u *Upstream) MayShow(reads WriteReads) bool {
	return reads == ReadSnapshot && !u.LocksReads || u.SameLocks && reads == ReadLocked
}

// A Hole is a value that is filled in when the statement is sent.
type Hole uint8

const (
	// NoHole: the piece is text.
	NoHole Hole = iota
	// TagHole is the statement's tag, as text of type VARBINARY.
	TagHole
	// RowIDHole is the id of an inserted row: the tag, a colon and the row's ordinal in base 36.
	RowIDHole
	// RowCountHole is ROW_COUNT() as the client's previous statement left it.
	RowCountHole
	// FoundRowsHole is FOUND_ROWS() as the client's previous statement left it.
	FoundRowsHole
	// ShownHole is 1 where a write is to show what its subqueries read, 0 where not.
	ShownHole
	// CopyHole is the value of one of the client's own parameters; see [Upstream].Copies.
	CopyHole
)

// A Piece of the statement that goes upstream: text as it stands, or a hole. In a text statement a hole becomes a
// literal, in a prepared one a ? with a hidden parameter.
type Piece struct {
	Text    string // client's bytes or inserted text; empty for a hole
	Hole    Hole
	Ordinal int // RowIDHole: the row's ordinal; CopyHole: the client's parameter; both from 0
}

// A Hidden parameter is a ? that the plan added to a prepared statement.
type Hidden struct {
	Index   int // its position among all parameters of the statement that goes upstream
	Hole    Hole
	Ordinal int
}

// A Copy is a parameter of the client's that occurs in what a plan adds. NULL is of every type.
type Copy struct {
	Param int // its position among the client's own
	// Integer: it must be an integer; Moment: a date, with or without a time, or the text of one; One: the number 1, or
	// its text; Rows: a number of rows, or its text; otherwise a string that is sent with the rest.
	Integer, Moment, One, Rows bool
}

// Writes says how the rows are known that the statement writes.
type Writes struct {
	// Captured says that the statement collects entries in the session variables (see [CaptureInit]).
	Captured bool
	// ExactOfNone says that the statement is exact if it changes no row: it is inexact for nothing but that foreign
	// keys change rows along with its own.
	ExactOfNone bool
	// Retried says that the server may evaluate the statement again, over newer rows: its entries are the
	// last ones.
	Retried bool
	// Beside are the tables of subqueries, of whose rows the statement collects arrays: entries name them by their
	// index.
	Beside []Source
	// Images says which images the statement collects in session variables, in mode predicates.
	Images ImageSpec
	// Inserts is the number of rows that an INSERT writes under ids made from RowIDHole, or [CountUnknown].
	Inserts int
}

// CountUnknown is what Writes.Inserts says where only the server's reply can tell how many rows an INSERT writes: their
// ids are made as those from RowIDHole.
const CountUnknown = -1

// An ImageSpec says of which columns the images hold values that a statement collects of the rows which it writes.
type ImageSpec struct {
	// Inserted are those of rows that it inserts, Updated of rows that it updates: lists of names as SQL spells them,
	// in parentheses; empty where it collects no such images.
	Inserted, Updated string
	// AutoIncrement says that the first of Inserted is the AUTO_INCREMENT column: it is collected as 0 where the server
	// gives the number. Consecutive says that then the numbers of its rows follow one another.
	AutoIncrement, Consecutive bool
	// Constant is what all rows of the statement have alike. It collects nothing of these.
	Constant Constants
}

// Empty reports whether no images are collected.
func (p ImageSpec) Empty() bool { return p.Inserted == "" && p.Updated == "" }

// ImageValues stands in an image between the columns and their values, which end with the parenthesis.
const ImageValues = " VALUES ("

// TxnEffect is what the statement does to the transaction.
type TxnEffect struct {
	// Ends says that the statement ends an open transaction (COMMIT, ROLLBACK, BEGIN, DDL) or may (CALL, SET): captured
	// entries must be read before it is sent.
	Ends bool
	// Commits says that the statement, if it ends an open transaction, commits it (LOCK TABLES, GRANT, ...). Of Kind
	// Other and Call it is not known otherwise.
	Commits bool
	// Branch says that the statement is a step of two-phase commit, XA END or XA PREPARE: nobody but who commits or
	// rolls the branch back ends the transaction.
	Branch bool
	// Global is the name of a branch that the statement prepares (Branch), commits or rolls back (Kind Commit and
	// Rollback), if that can be told: one name for all spellings of it, empty otherwise.
	Global string
	// MayRestart says that the statement may end an open transaction and begin the next one, without a trace in the
	// server's reply: several statements in one text.
	MayRestart bool
	// MayTakeSnapshot reports whether the statement may read rows, though it shows none. It may so give the
	// transaction its snapshot: EXPLAIN of a statement, CHECKSUM TABLE.
	MayTakeSnapshot bool
	// NextLevel is the level that SET TRANSACTION gives to the next transaction only.
	NextLevel history.Level
	// SetsNext says that the statement may give the next transaction a level that is not known.
	SetsNext bool
	// Savepoint is the name in SAVEPOINT, RELEASE SAVEPOINT and ROLLBACK TO, folded to lower case; Kind tells them
	// apart: Savepoint, Release, Rollback.
	Savepoint string
}

// SessionEffect is what the statement does to the session's state, or asks of it.
type SessionEffect struct {
	// Changes says that the statement may change what the session's own tracking rests on (isolation level, sql_mode,
	// character set, default schema): ask the server again.
	Changes bool
	// ReadsDiagnostics says that the statement asks about the one before it (ROW_COUNT(), FOUND_ROWS(), SHOW WARNINGS,
	// ...): nothing of isotap's may run between the two.
	ReadsDiagnostics bool
	// FindsRows says that the statement shows no rows and still leaves in FOUND_ROWS() what it found, or what the last
	// subquery that was evaluated did.
	FindsRows  bool
	Conditions Conditions
	TableLocks TableLocks
}

// TableLocks says what a statement does to the locks of LOCK TABLES. Under these no other statement may name a table
// twice by one name.
type TableLocks uint8

// What a statement may do to them.
const (
	KeepsTableLocks TableLocks = iota
	TakesTableLocks
	ReleasesTableLocks
)

// Conditions says how a statement asks for the conditions (errors and warnings) that the one before it raised.
type Conditions uint8

const (
	// NoConditions: it does not.
	NoConditions Conditions = iota
	// CountsConditions: in an expression, such as @@warning_count. Like any other statement it then leaves conditions
	// of its own.
	CountsConditions
	// KeepsConditions: a statement that leaves them as they are, such as GET DIAGNOSTICS.
	KeepsConditions
	// ShowsCount: likewise, and it tells how many there are, as SHOW COUNT(*) does.
	ShowsCount
	// ListsConditions: likewise, and its rows are the conditions: SHOW WARNINGS, SHOW ERRORS.
	ListsConditions
)

// SchemaEffect is what the statement does to tables.
type SchemaEffect struct {
	// Changes says that tables may look different afterwards: read the schema again, of Changed alone when it names any
	// tables. One with a schema alone stands for all tables of that schema.
	Changes bool
	Changed []rewrite.TableName
	// References are tables to which those of Changed may have foreign keys from now on: what these do to others when
	// they are written may have changed.
	References []rewrite.TableName
	// Triggers says what became of the triggers of Changed.
	Triggers rewrite.TriggerFate
	// Created is the table that the statement creates with isotap's columns behind the client's, and these; nil where
	// they cannot be told, or where isotap's do not show.
	Created []string
	// CreatesTemp are the temporary tables that the statement creates, in lower case: from then on these names may not
	// mean the base tables.
	CreatesTemp []rewrite.TableName
	// DropsTemp are the tables that the statement drops, spelled as in CreatesTemp: if it succeeds, no temporary table
	// has such a name any more.
	DropsTemp []rewrite.TableName
}

// maxParams is the number of placeholders that a prepared statement can have: COM_STMT_PREPARE's
// reply counts them in two bytes.
const maxParams = 65535

// Options change how statements are rewritten.
type Options struct {
	// StrictPlans leaves a SELECT alone when the wider select list could make the server choose
	// another plan, and with it another order, or other rows under LIMIT.
	StrictPlans bool
	// Predicates has writes collect images of the rows that they leave, and tells by which conditions statements
	// choose rows.
	Predicates bool
}

// A Rewriter plans statements. It is safe for concurrent use.
type Rewriter struct {
	schema  Schema
	options Options
	parsers sync.Pool // of *parser.Parser, which is not safe for concurrent use
}

// New returns a rewriter for the tables of schema.
func New(schema Schema, o Options) *Rewriter {
	r := &Rewriter{schema: schema, options: o}
	r.parsers.New = func() any { return parser.New() }
	return r
}

// dropEdits forgets what would observe the statement.
func (pl *planner) dropEdits() {
	pl.edits = slices.DeleteFunc(pl.edits, func(e edit) bool { return !e.plain })
}

// keepReply says how the reply is masked for the client, unless the statement was rewritten: it is masked also where
// the statement cannot be observed.
func (pl *planner) keepReply(r rewrite.Reply) {
	if pl.plan.Result.Reply == rewrite.Unchanged {
		pl.plan.Result.Reply = r
	}
}

// opaque makes p the plan of a statement that goes as it is and is not observed.
func opaque(p *Plan, reason history.Reason) {
	p.Observation, p.Reason = history.Opaque, reason
	p.Predicates = nil
	p.Upstream = Upstream{Plain: p.Upstream.Plain, Parts: p.Upstream.Parts}
	p.Result, p.Writes = Result{}, Writes{}
}

// A planner makes the plan of one statement.
type planner struct {
	rewriter *Rewriter
	session  *Session
	st       *statement
	plan     *Plan
	beyond   beyond
	into     span // SELECT ... INTO @a, @b
	edits    []edit
	nesting  nesting
	chosen   []choice // the conditions by which the statement chooses rows
	// constant are values that all rows of the statement have, and numbered is the column that the server numbers.
	constant []constant
	numbered string
	order    ordering // of its rows, if they have a LIMIT
	literal  bool     // the plan rests on the values of literals
	ownNames bool     // a table or view of the statement has a column that is named as isotap's are
	// alone is the statement, if it is a SELECT that no set operation combines, besides the columns that show what its
	// subqueries read.
	alone   *ast.SelectStmt
	united  bool // it is a set operation, each of whose queries may show what its subqueries read
	oneOf   bool // it is for one of these queries
	removed bool // it is for a companion: the client's statement removes duplicates
	besides []*besides
	// parameters are those of the client's that they repeat.
	parameters []Copy
	// renamed are the names that copies have of columns which a query in FROM passes outwards; nil: the client's.
	renamed *namesAround
	// none says that the subqueries of an INSERT found no row for any that it reads.
	none bool

	read    bool // trees and failure are set
	trees   []ast.StmtNode
	failure error // why there are no trees
	// companion makes the companion of an opaque statement; nil when it has none.
	companion *planner
}

// A refusal is the reason why a statement is opaque: its plan gets it as its Reason.
type refusal history.Reason

func (r refusal) Error() string { return history.Reason(r).String() }

// reasonOf returns the reason in an error of the planner's, which are refusals.
func reasonOf(err error) history.Reason {
	if r, ok := err.(refusal); ok {
		return history.Reason(r)
	}
	return history.ReasonUnparsable
}

// downgrade makes the plan inexact; the first reason stays.
func (pl *planner) downgrade(reason history.Reason) {
	if pl.plan.Observation == history.Exact {
		pl.plan.Observation, pl.plan.Reason = history.Inexact, reason
	}
	pl.plan.Writes.ExactOfNone = false
}

// downgradeCascading makes the plan inexact since foreign keys change rows along with those that the statement names.
func (pl *planner) downgradeCascading() {
	ofNone := pl.plan.Observation == history.Exact
	pl.downgrade(history.ReasonCascade)
	pl.plan.Writes.ExactOfNone = ofNone
}

// table finds the table that a name means in this session, or the reason why isotap cannot observe it.
func (pl *planner) table(name *ast.TableName) (*Table, history.Reason) {
	schema := name.Schema.O
	if schema == "" {
		schema = pl.session.Schema
	}
	if pl.session.hasTempTable(schema, name.Name.O) {
		return nil, history.ReasonTemporaryTable
	}
	t := pl.lookup(schema, name.Name.O)
	switch {
	case t == nil:
		return nil, history.ReasonUnknownTable
	case t.View:
		return nil, history.ReasonView
	case t.Temporary:
		return nil, history.ReasonTemporaryTable
	case !t.Instrumented:
		return nil, history.ReasonNotInstrumented
	}
	return t, history.Reason{}
}

// lookup returns the table or view that a schema has by a name; nil where it is not known. A star may show all of its
// columns.
func (pl *planner) lookup(schema, name string) *Table {
	t := pl.rewriter.schema.Table(schema, name)
	pl.ownNames = pl.ownNames || t != nil && slices.ContainsFunc(t.Columns, func(c Column) bool {
		return strings.HasPrefix(strings.ToLower(c.Name), rewrite.CarriedPrefix)
	})
	return t
}

// onlyTable returns the one base table of an INSERT, UPDATE or DELETE; several is the reason to refuse
// when there are more.
func onlyTable(refs *ast.TableRefsClause, several history.Reason) (*ast.TableName, error) {
	if refs == nil || refs.TableRefs == nil || refs.TableRefs.Right != nil {
		return nil, refusal(several)
	}
	source, ok := refs.TableRefs.Left.(*ast.TableSource)
	if !ok {
		return nil, refusal(several)
	}
	name, ok := source.Source.(*ast.TableName)
	if !ok {
		return nil, refusal(several)
	}
	return name, nil
}

// target finds the instrumented table that a statement writes.
func (pl *planner) target(refs *ast.TableRefsClause, several history.Reason) (*Table, error) {
	name, err := onlyTable(refs, several)
	if err != nil {
		return nil, err
	}
	return pl.named(name)
}

// named finds the instrumented table of that name, which the statement writes.
func (pl *planner) named(name *ast.TableName) (*Table, error) {
	t, reason := pl.table(name)
	if t == nil {
		return nil, refusal(reason)
	}
	pl.plan.Target = t.Name
	if pl.st.mentions(rewrite.RowIDColumn) || pl.st.mentions(rewrite.WListColumn) {
		return nil, refusal(history.ReasonOwnColumn)
	}
	return t, nil
}

// checkSpelling refuses names that the session's character set would spell in other bytes than
// UTF-8, which is what the schema gives.
func (pl *planner) checkSpelling(names ...string) error {
	for _, n := range names {
		if !ascii(n) && !pl.session.utf8() {
			return refusal(history.ReasonCharset)
		}
	}
	return nil
}

// An edit puts pieces in the place of text[start:end]; most edits replace nothing.
type edit struct {
	start, end int
	pieces     []Piece
	plain      bool // it belongs to Upstream.Plain too
}

// A span is a run of tokens [from, to); it is empty where a statement has no such part.
type span struct{ from, to int }

func (s span) empty() bool { return s.from >= s.to }

// beyond is what the parser does not know of a write, and the lexer finds.
type beyond struct {
	rowAlias  span // MySQL: AS new or AS new(a, b), behind the rows of an INSERT
	returning span // MariaDB: RETURNING and its list
}
