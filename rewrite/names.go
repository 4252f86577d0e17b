package rewrite

import "strings"

// The auxiliary columns, and the session variables that collect an UPDATE's before-images.
const (
	RowIDColumn = "isotap_rowid"
	WListColumn = "isotap_wlist"
)

// CarriedPrefix begins the names under which queries in a FROM clause pass identities outwards. A star
// may carry such columns into the result.
const CarriedPrefix = "isotap_carried_"

// NamePrefix begins every name that isotap gives to anything in a statement.
const NamePrefix = "isotap_"

// The names of columns that isotap adds to a result, beside those that begin with [CarriedPrefix] and those that are
// numbered, as isotap_1 is.
const (
	// PartsColumn holds what the parts of a WITH clause tell that write, WrittenColumn what one of them does, and
	// PresentColumn whether a row is one of the client's (PostgreSQL).
	PartsColumn   = "isotap_parts"
	WrittenColumn = "isotap_written"
	PresentColumn = "isotap_present"
)

// IsColumn reports whether a column of a result has a name under which isotap adds columns that are not the client's.
// The columns of tables, [RowIDColumn] and [WListColumn], are not among them: a client may ask for these.
//
// A client can give a column such a name itself. A statement in whose text it stands, or a table of whose columns one
// has it, goes as the client wrote it, so that in the result of a statement that isotap has changed such a column is
// isotap's. It remains that a function in a FROM clause returns a column so named: that one is taken for isotap's once.
func IsColumn(name string) bool {
	rest, ours := strings.CutPrefix(name, NamePrefix)
	if !ours {
		return false
	}
	switch name {
	case PartsColumn, WrittenColumn, PresentColumn:
		return true
	}
	return strings.HasPrefix(name, CarriedPrefix) || rest != "" && strings.Trim(rest, "0123456789") == ""
}
