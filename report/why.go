package report

import (
	"bufio"
	"fmt"
	"io"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/jsondoc"
)

// Why writes how two transactions are ordered as text: the answer, then each dependency of the way from one to
// the other with its row, version, statements and times, or the reasons why there is none. Of the options it
// heeds Color and Width. The error is w's.
func Why(w io.Writer, why *analyzer.Why, opts TerminalOptions) error {
	if opts.Width == 0 {
		opts.Width = 80
	}
	opts.Width = max(opts.Width, 40)
	t := &terminal{w: bufio.NewWriter(w), opts: opts}
	t.text("", why.Summary, bold)
	for _, reason := range why.Reasons {
		t.text("  ", reason, "")
	}
	t.path(why.Family, why.AB)
	t.path(why.Family, why.BA)
	t.line()
	for _, txn := range []*history.Txn{why.A, why.B} {
		t.text("  ", fmt.Sprintf("%s: session %d, %s, %s, %s", txn.ID, txn.Session, levelName(txn.Level), txn.Status,
			at(txn.Start, txn.End)), dim)
	}
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write the explanation: %w", err)
	}
	return nil
}

func (t *terminal) path(family dbms.Family, p analyzer.Path) {
	if len(p.Edges) == 0 {
		return
	}
	statements := quotable(&analyzer.Finding{Family: family, Witness: p.Edges})
	t.line()
	for i := range p.Edges {
		e := &p.Edges[i]
		t.text(fmt.Sprintf("  %d  ", i+1), string(e.Kind)+edgeNotes(e)+"  "+
			plain(prose(p.Sentences[i], statements, proseCode)), "")
		t.moment(e.From, e.FromStmt)
		t.moment(e.To, e.ToStmt)
	}
}

// moment says when a statement ran.
func (t *terminal) moment(txn *history.Txn, s *history.Stmt) {
	if txn != nil && s != nil {
		t.text("     ", fmt.Sprintf("%s: statement %d, %s", txn.ID, s.Num, at(s.Start, s.End)), dim)
	}
}

// WhySchema names the schema of [WhyJSON] and its version, as [Schema] does.
const WhySchema = "isotap-why/1"

type (
	jsonWhy struct {
		Schema  string     `json:"schema"`
		Summary string     `json:"summary"`
		A       string     `json:"a"`
		B       string     `json:"b"`
		AB      []jsonStep `json:"a_to_b"`
		BA      []jsonStep `json:"b_to_a"`
		Reasons []string   `json:"reasons"`
		Txns    []jsonTxn  `json:"transactions"`
	}
	jsonStep struct {
		jsonEdge
		Text string `json:"text"`
	}
)

// WhyJSON writes the same as one JSON document, as docs/report-json.md describes it. The error is w's.
func WhyJSON(w io.Writer, why *analyzer.Why) error {
	doc := jsonWhy{Schema: WhySchema, Summary: why.Summary, A: why.A.ID.String(), B: why.B.ID.String(),
		AB: newJSONPath(why.AB), BA: newJSONPath(why.BA), Reasons: list(why.Reasons)}
	f := &analyzer.Finding{Family: why.Family, Witness: append([]analyzer.Edge{{From: why.A, To: why.B}},
		append(why.AB.Edges, why.BA.Edges...)...)}
	names := newWitness(f)
	for _, t := range names.txns {
		doc.Txns = append(doc.Txns, newJSONTxn(names, t, clock{}))
	}
	return jsondoc.Write(w, "the explanation", doc)
}

func newJSONPath(p analyzer.Path) []jsonStep {
	steps := make([]jsonStep, len(p.Edges))
	for i := range p.Edges {
		steps[i] = jsonStep{newJSONEdge(&p.Edges[i]), p.Sentences[i]}
	}
	return steps
}
