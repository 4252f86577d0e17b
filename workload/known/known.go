// Package known has the workloads that papers and benchmarks on isolation use, each with an invariant of its own: what
// its authors hold to be so as long as transactions are serializable. Each workload is a file.
package known

import (
	"fmt"
	"strings"

	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/tpcc"
)

// A Kind is one of the workloads.
type Kind struct {
	Name  string // as in flags
	Short string // what it does and what it shows, in a line
	// Plants says that the workload is right at every level from READ COMMITTED on, and can be made with a mistake.
	Plants bool
	make   func(o Options) workload.Workload
}

// Options of a workload.
type Options struct {
	Scale int  // how much there is of everything, at least 1; the smaller, the more the clients meet
	Plant bool // with a mistake; see Kind
}

// Kinds are all workloads, the simplest first.
var Kinds = []Kind{
	{"counter", "numbers that are read, counted up and written back: lost update", false, newCounter},
	{"bank", "transfers between accounts that are read and written back, and audits: lost update, read skew", false,
		newBank},
	{"queue", "jobs that workers take with FOR UPDATE SKIP LOCKED; planted: they only read them", true, newQueue},
	{"smallbank", "SmallBank: five programs on savings and checking accounts: skews that snapshot isolation permits",
		false, newSmallbank},
	{"auction", "the Auction of Vandevoort et al., robust against READ COMMITTED; " +
		"planted: bids without the call: lost update", true, newAuction},
	{"list-append", "Elle's list-append: transactions that read lists and append to them: read skew", false,
		newAppending},
	{"tpcc", "TPC-C, a warehouse for each of the scale; planted: Payment adds up on its own side: lost update", true,
		newTPCC},
}

// New makes the workload of a name.
func New(name string, o Options) (workload.Workload, error) {
	if o.Scale < 1 {
		return nil, fmt.Errorf("the scale is %d: 1 or more", o.Scale)
	}
	var names []string
	for _, k := range Kinds {
		if k.Name != name {
			names = append(names, k.Name)
			continue
		}
		if o.Plant && !k.Plants {
			return nil, fmt.Errorf("there is no mistake to plant in %s: it has its own", name)
		}
		return k.make(o), nil
	}
	return nil, fmt.Errorf("there is no workload %q: %s", name, strings.Join(names, ", "))
}

func newTPCC(o Options) workload.Workload { return tpcc.New(o.Scale, o.Plant) }

// two draws two different numbers from 1 to n.
func two(c *workload.Client, n int) (int, int) {
	a, b := 1+c.Random.IntN(n), 1+c.Random.IntN(n-1)
	if b >= a {
		b++
	}
	return a, b
}
