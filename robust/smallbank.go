package robust

// SmallBank returns the benchmark of Alomari, Cahill, Fekete and Röhm (ICDE 2008) as the paper models it (7.1):
// customers with a savings and a checking account, and five programs without loops, branches or predicates.
func SmallBank() *Workload {
	schema := &Schema{
		Relations: []*Relation{
			{Name: "Account", Attributes: []string{"Name", "CustomerId"}, Key: []string{"Name"}},
			{Name: "Savings", Attributes: []string{"CustomerId", "Balance"}, Key: []string{"CustomerId"}},
			{Name: "Checking", Attributes: []string{"CustomerId", "Balance"}, Key: []string{"CustomerId"}},
		},
		ForeignKeys: []*ForeignKey{
			{Name: "AccountSavings", Domain: "Account", Columns: []string{"CustomerId"}, Range: "Savings",
				References: []string{"CustomerId"}},
			{Name: "AccountChecking", Domain: "Account", Columns: []string{"CustomerId"}, Range: "Checking",
				References: []string{"CustomerId"}},
		},
	}
	return &Workload{Name: "SmallBank", Schema: schema, Programs: []*Program{
		bankProgram("Balance", "Bal", forCustomer("1", balance("Savings", "1", ":a"), balance("Checking", "1", ":b"))),
		bankProgram("Amalgamate", "Am",
			forCustomer("1", takeAll("Savings", "1", ":a"), takeAll("Checking", "1", ":b")),
			forCustomer("2", add("Checking", "2", "+ :a + :b"))),
		bankProgram("DepositChecking", "DC", forCustomer("1", add("Checking", "1", "+ :V"))),
		bankProgram("TransactSavings", "TS", forCustomer("1", add("Savings", "1", "+ :V"))),
		bankProgram("WriteCheck", "WC", forCustomer("1",
			balance("Savings", "1", ":a"), balance("Checking", "1", ":b"), add("Checking", "1", "- :V"))),
	}}
}

// customerPart is what a program does for one customer: it looks up the id by the name, then uses accounts by the id.
type customerPart struct {
	lookup   *Statement
	accounts []*Statement
}

func forCustomer(n string, accounts ...*Statement) customerPart {
	return customerPart{accounts: accounts, lookup: &Statement{
		Type: KeySel, Relation: "Account", Read: Of("CustomerId"), Key: []string{":N" + n},
		SQL: "SELECT CustomerId INTO :x" + n + " FROM Account WHERE Name = :N" + n,
	}}
}

// bankProgram looks up all customers before it uses accounts.
func bankProgram(name, short string, parts ...customerPart) *Program {
	var lookups, accounts Sequence
	var constraints []Constraint
	for _, part := range parts {
		lookups = append(lookups, part.lookup)
		for _, q := range part.accounts {
			accounts = append(accounts, q)
			constraints = append(constraints, Constraint{Parent: q, ForeignKey: "Account" + q.Relation,
				Child: part.lookup})
		}
	}
	p := NewProgram(name, append(lookups, accounts...), constraints...)
	p.Short = short
	return p
}

// balance reads an account.
func balance(relation, n, into string) *Statement {
	return &Statement{
		Type: KeySel, Relation: relation, Read: Of("Balance"), Key: []string{":x" + n},
		SQL: "SELECT Balance INTO " + into + " FROM " + relation + " WHERE CustomerId = :x" + n,
	}
}

// add changes an account by an amount.
func add(relation, n, amount string) *Statement {
	return &Statement{
		Type: KeyUpd, Relation: relation, Read: Of("Balance"), Write: Of("Balance"), Key: []string{":x" + n},
		SQL: "UPDATE " + relation + " SET Balance = Balance " + amount + " WHERE CustomerId = :x" + n,
	}
}

// takeAll empties an account and says what was in it, in one statement.
func takeAll(relation, n, into string) *Statement {
	return &Statement{
		Type: KeyUpd, Relation: relation, Read: Of("Balance"), Write: Of("Balance"), Key: []string{":x" + n},
		SQL: "UPDATE " + relation + " SET Balance = 0 WHERE CustomerId = :x" + n + " RETURNING old.Balance INTO " +
			into,
	}
}
