package mysql

import (
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// MaxCompanionRows is how many rows of a companion are read. It asks for one more, which tells that
// there were more.
const MaxCompanionRows = 10_000

// accompanyDistinct gives a SELECT DISTINCT its companion.
func (pl *planner) accompanyDistinct(n *ast.SelectStmt) {
	pl.accompany([]arm{{node: n, to: pl.st.last() + 1}}, nil)
}

// accompany gives a statement that removes duplicates its companion: the same text with all rows, and
// their identities behind them. What must not run twice, or reads something else the second time, has
// none; nor has what locks, because the companion could be executed by another plan and lock more.
func (pl *planner) accompany(arms []arm, operators []int) {
	if pl.plan.Locking != history.NoLock || !pl.repeatable() {
		return
	}
	c := &planner{rewriter: pl.rewriter, session: pl.session, st: pl.st,
		plan: &Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Exact,
			Params: pl.plan.Params}}}
	for _, e := range pl.edits {
		if e.plain {
			c.edits = append(c.edits, e)
		}
	}
	for i := range arms {
		a := &arms[i]
		if a.node.Distinct && !c.keepDuplicates(a) {
			return
		}
	}
	for _, i := range operators {
		c.unionAll(i)
	}
	if err := c.armRows(arms); err != nil || len(c.plan.Result.Sources) == 0 || c.plan.Observation != history.Exact {
		return
	}
	if pl.st.find(0, len(pl.st.Tokens), -1, "LIMIT", "FETCH", "OFFSET") >= 0 {
		c.downgrade(history.ReasonLimit) // of the rows read, those are missing that gave way to duplicates
	} else {
		pos, gap := c.after(pl.st.last())
		c.insertAt(pos, text(" LIMIT "+strconv.Itoa(MaxCompanionRows+1)+gap))
	}
	pl.companion = c
}

// keepDuplicates makes an arm a SELECT ALL, in the text and in its tree.
func (pl *planner) keepDuplicates(a *arm) bool {
	st, at := pl.st, -1
	for i := a.from; i < a.to && st.Tokens[i].Start < a.node.Fields.Fields[0].Offset; i++ {
		if st.is(i, "DISTINCT", "DISTINCTROW") {
			at = i // the last one: those before it are in a WITH
		}
	}
	if at < 0 {
		return false
	}
	pl.edits = append(pl.edits, edit{start: st.Tokens[at].Start, end: st.Tokens[at].End,
		pieces: []Piece{text("ALL")}})
	node := *a.node
	node.Distinct = false
	a.node = &node
	return true
}

// unionAll makes the set operator that begins at token i a UNION ALL.
func (pl *planner) unionAll(i int) {
	st := pl.st
	end := st.Tokens[i].End
	if st.is(i+1, "ALL", "DISTINCT") {
		end = st.Tokens[i+1].End
	}
	pl.edits = append(pl.edits, edit{start: st.Tokens[i].Start, end: end, pieces: []Piece{text("UNION ALL")}})
}

// repeatable reports whether a statement run twice in one snapshot does the same twice, and has no other
// effect.
func (pl *planner) repeatable() bool {
	st := pl.st
	if strings.Contains(st.SQL, "/*+") {
		return false // a hint may set a variable for the statement
	}
	for i, t := range st.Tokens {
		switch t.Kind {
		case mysqltoken.Variable:
			if strings.HasPrefix(st.tok(i), "@@") {
				return false
			}
		case mysqltoken.Mark:
			if st.mark(i, ":=") {
				return false
			}
		case mysqltoken.Word:
			s := strings.ToLower(st.tok(i))
			if changing[s] || st.mark(i+1, "(") && !nativeFunctions[s] && !beforeParenthesis[s] && !beforeQuery[s] {
				return false
			}
		case mysqltoken.Name:
			if st.mark(i+1, "(") {
				return false
			}
		}
	}
	return true
}

// changing are the words, in lower case, of expressions whose value changes from one statement to the
// next, or that do more than give a value. As the name of a column they only cost an observation.
var changing = set(`
	benchmark curdate current_date current_time current_timestamp curtime des_encrypt encrypt found_rows get_lock
	getvar is_free_lock is_used_lock last_insert_id lastval load_file localtime localtimestamp master_gtid_wait
	master_pos_wait next nextval now previous procedure rand random_bytes release_all_locks release_lock row_count
	rownum setval sleep sql_calc_found_rows sys_guid sysdate unix_timestamp utc_date utc_time utc_timestamp uuid
	uuid_short wsrep_last_seen_gtid wsrep_last_written_gtid wsrep_sync_wait_upto_gtid
`)

// beforeQuery are the words that may stand before the parenthesis around a query or a list of tables.
var beforeQuery = set("all distinct distinctrow except from index intersect join key partition select union")
