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
	// PresentColumn whether a row is one of the client's (PostgreSQL). Of a statement that went within a SELECT, and is
	// none itself, its name goes on with the verb: see [PresentColumnOf].
	PartsColumn   = "isotap_parts"
	WrittenColumn = "isotap_written"
	PresentColumn = "isotap_present"
)

// presentVerbs are what PresentColumn's name goes on with, by what the statement's command tag begins with.
var presentVerbs = map[string]string{"SELECT ": "", "INSERT 0 ": "_insert", "UPDATE ": "_update", "DELETE ": "_delete",
	"MERGE ": "_merge"}

// PresentColumnOf is [PresentColumn] of a statement whose command tag begins with that.
func PresentColumnOf(tag string) string { return PresentColumn + presentVerbs[tag] }

// TagOfPresent returns what the command tag of a statement begins with that has a column of that name, which is
// [PresentColumn] or one of a verb; ok is false for other names.
func TagOfPresent(name string) (tag string, ok bool) {
	verb, ok := strings.CutPrefix(name, PresentColumn)
	if !ok {
		return "", false
	}
	for tag, of := range presentVerbs {
		if of == verb {
			return tag, true
		}
	}
	return "", false
}

// IsColumn reports whether a column of a result has a name under which isotap adds columns that are not the client's.
// The columns of tables, [RowIDColumn] and [WListColumn], are not among them: a client may ask for these.
//
// A client can give a column such a name itself. A statement in whose text it stands, or a table or function of whose
// columns one has it, goes as the client wrote it, so that in the result of a statement that isotap has changed such a
// column is isotap's.
func IsColumn(name string) bool {
	rest, ours := strings.CutPrefix(name, NamePrefix)
	if !ours {
		return false
	}
	switch name {
	case PartsColumn, WrittenColumn:
		return true
	}
	if _, present := TagOfPresent(name); present {
		return true
	}
	return strings.HasPrefix(name, CarriedPrefix) || rest != "" && strings.Trim(rest, "0123456789") == ""
}
