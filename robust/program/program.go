// Package program reads transaction programs that are written down in SQL, and makes of them what package robust works
// on: basic transaction programs over a schema.
//
// A file holds programs as Figure 1 of Vandevoort, Ketsman, Koch and Neven (EDBT 2023) has them, one after the other:
//
//	-- Places a bid.
//	PlaceBid [PB] (:B, :V):
//	  UPDATE Buyer SET calls = calls + 1 WHERE id = :B;
//	  SELECT bid INTO :C FROM Bids WHERE buyerId = :B;
//	  IF :C < :V THEN
//	    UPDATE Bids SET bid = :V WHERE buyerId = :B;
//	  END IF;
//	  :logId = uniqueLogId();
//	  INSERT INTO Log VALUES (:logId, :B, :V);
//	COMMIT;
//
// A header is a name, a short name in brackets if wanted, the parameters and a colon; COMMIT (or END) ends the program.
// Between them stand, each with a semicolon behind it:
//
//   - Statements of SQL, plain but for parameters and variables, which are spelled :name. INTO :a, :b behind a select
//     list or RETURNING puts the columns of the row into variables, in either family.
//   - IF condition THEN … ELSIF condition THEN … ELSE … END IF. The condition is not looked at, but for queries in it,
//     which run before. One that asks whether a statement found its row (FOUND, or IS NULL of what it selected) says
//     that it may not find it: the statement is then by predicate.
//   - LOOP … END LOOP, WHILE condition LOOP … END LOOP, FOR EACH :a, :b IN anything LOOP … END LOOP. A query behind IN
//     runs before.
//   - :name = anything (or :=). A variable that is given another's value is equal to it; all other values are new ones.
//   - COMMIT inside of IF ends the program there; ROLLBACK (or ABORT) says that this way leads to no transaction that
//     counts.
//   - BEGIN, START TRANSACTION and SET, which say nothing here.
//
// parse.go and control.go read the format; compile.go makes programs of it, by package footprint; builder.go finds the
// foreign keys between statements, and takes back what does not hold for all programs together. builtin.go has the
// paper's benchmarks as files. The package does no input or output, and panics on no input.
package program

import (
	"fmt"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
)

// A Source is a file of programs.
type Source struct {
	Name string // for messages
	Text string
}

// An Error is about a place in a file.
type Error struct {
	File string
	Line int
	Err  error
}

// Error returns FILE:LINE and what is wrong there.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Compile makes a workload of the programs in files. Its errors are of type *[Error] where they are about a place in a
// file.
func Compile(name string, family dbms.Family, schema *footprint.Schema, files ...Source) (*robust.Workload, error) {
	b := NewBuilder(name, schema)
	for _, f := range files {
		parsed, err := parse(f, family)
		if err != nil {
			return nil, err
		}
		for _, w := range parsed {
			if err := compile(b, family, w); err != nil {
				return nil, err
			}
		}
	}
	return b.Workload()
}
