package robust

import (
	"errors"
	"fmt"
)

// Auction returns the paper's running example (section 2) for n items, Auction(n) of 7.3: buyers, a log of all bids,
// and for each item a relation of the current bids, with the programs FindBids and PlaceBid. Auction(1) is Auction
// itself.
func Auction(n int) (*Workload, error) {
	if n < 1 {
		return nil, errors.New("an auction has one item at least")
	}
	w := &Workload{Name: "Auction", Schema: &Schema{
		Relations: []*Relation{
			{Name: "Buyer", Attributes: []string{"id", "calls"}, Key: []string{"id"}},
			{Name: "Log", Attributes: []string{"id", "buyerId", "bid"}, Key: []string{"id"}},
		},
		ForeignKeys: []*ForeignKey{
			{Name: "LogBuyer", Domain: "Log", Columns: []string{"buyerId"}, Range: "Buyer", References: []string{"id"}},
		},
	}}
	if n > 1 {
		w.Name = fmt.Sprintf("Auction(%d)", n)
	}
	for i := range n {
		item := ""
		if n > 1 {
			item = fmt.Sprint(i + 1)
		}
		bids := &Relation{Name: "Bids" + item, Attributes: []string{"buyerId", "bid"}, Key: []string{"buyerId"}}
		owner := &ForeignKey{Name: bids.Name + "Buyer", Domain: bids.Name, Columns: bids.Key, Range: "Buyer",
			References: []string{"id"}}
		w.Schema.Relations = append(w.Schema.Relations, bids)
		w.Schema.ForeignKeys = append(w.Schema.ForeignKeys, owner)
		w.Programs = append(w.Programs, findBids(item, bids), placeBid(item, bids, owner))
	}
	return w, nil
}

func findBids(item string, bids *Relation) *Program {
	p := NewProgram("FindBids"+item, Sequence{countCall(), &Statement{
		Type: PredSel, Relation: bids.Name, PRead: Of("bid"), Read: Of("bid"),
		SQL: "SELECT bid FROM " + bids.Name + " WHERE bid >= :T",
	}})
	p.Short = "FB" + item
	return p
}

func placeBid(item string, bids *Relation, owner *ForeignKey) *Program {
	buyer := countCall()
	current := &Statement{
		Type: KeySel, Relation: bids.Name, Read: Of("bid"), Key: []string{":B"},
		SQL: "SELECT bid INTO :C FROM " + bids.Name + " WHERE buyerId = :B",
	}
	raise := &Statement{
		Type: KeyUpd, Relation: bids.Name, Read: Of(), Write: Of("bid"), Key: []string{":B"},
		SQL: "UPDATE " + bids.Name + " SET bid = :V WHERE buyerId = :B",
	}
	entry := &Statement{
		Type: Ins, Relation: "Log", Write: Of("id", "buyerId", "bid"), Key: []string{":logId"},
		SQL: "INSERT INTO Log VALUES (:logId, :B, :V)",
	}
	p := NewProgram("PlaceBid"+item, Sequence{buyer, current, &Optional{Body: raise}, entry},
		Constraint{Parent: buyer, ForeignKey: owner.Name, Child: current},
		Constraint{Parent: buyer, ForeignKey: owner.Name, Child: raise},
		Constraint{Parent: buyer, ForeignKey: "LogBuyer", Child: entry})
	p.Short = "PB" + item
	return p
}

// countCall is the first statement of both programs.
func countCall() *Statement {
	return &Statement{
		Type: KeyUpd, Relation: "Buyer", Read: Of("calls"), Write: Of("calls"), Key: []string{":B"},
		SQL: "UPDATE Buyer SET calls = calls + 1 WHERE id = :B",
	}
}
