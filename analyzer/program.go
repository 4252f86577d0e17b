package analyzer

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
)

// programs numbers the programs of transactions.
type programs struct {
	shapes   map[string]shape
	names    []string // shapes by number
	index    map[string]int32
	list     []program
	sequence []int32 // scratch
	key      []byte  // scratch
}

type shape struct {
	number int32
	nested bool
}

type program struct {
	shapes []int32
	level  history.Level
	count  int
}

func newPrograms() programs {
	return programs{shapes: make(map[string]shape), index: make(map[string]int32)}
}

// of gives a transaction's program: its statements' shapes in order, without those that only
// delimit it (BEGIN, COMMIT, SET, ...), and with loops folded.
func (p *programs) of(t *history.Txn) int32 {
	p.sequence = p.sequence[:0]
	for i := range t.Stmts {
		switch s := &t.Stmts[i]; s.Kind {
		case history.Begin, history.Commit, history.Rollback, history.Savepoint, history.Set:
		default:
			p.sequence = fold(append(p.sequence, p.shape(s.Shape).number))
		}
	}
	p.key = append(p.key[:0], byte(t.Level))
	for _, n := range p.sequence {
		p.key = binary.LittleEndian.AppendUint32(p.key, uint32(n))
	}
	n, ok := p.index[string(p.key)]
	if !ok {
		n = int32(len(p.list))
		p.index[string(p.key)] = n
		p.list = append(p.list, program{shapes: slices.Clone(p.sequence), level: t.Level})
	}
	p.list[n].count++
	return n
}

// maxLoop is the number of statements in the longest loop body that folds.
const maxLoop = 8

// fold takes the last statements off a sequence if they repeat those right before them.
func fold(seq []int32) []int32 {
	for n := 1; n <= maxLoop && 2*n <= len(seq); n++ {
		body := len(seq) - n
		if slices.Equal(seq[body-n:body], seq[body:]) {
			return seq[:body]
		}
	}
	return seq
}

func (p *programs) shape(text string) shape {
	s, ok := p.shapes[text]
	if !ok {
		text = strings.Clone(text)
		s = shape{int32(len(p.names)), strings.Count(strings.ToUpper(text), "SELECT") > 1}
		p.shapes[text] = s
		p.names = append(p.names, text)
	}
	return s
}

// nested says whether a statement has another SELECT inside it.
func (p *programs) nested(text string) bool { return p.shape(text).nested }

// stmts gives the shapes of a program.
func (p *programs) stmts(n int32) []string {
	var stmts []string
	for _, s := range p.list[n].shapes {
		stmts = append(stmts, p.names[s])
	}
	return stmts
}
