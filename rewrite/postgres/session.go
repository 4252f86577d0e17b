package postgres

import "github.com/isotap/isotap/rewrite"

// lexable reports whether the bytes of ASCII stand for themselves wherever they occur in a text.
func (s *Session) lexable() bool {
	switch s.Encoding {
	case "SJIS", "SHIFT_JIS_2004", "BIG5", "GBK", "UHC", "GB18030", "JOHAB":
		return false
	}
	return true
}

// utf8 reports whether names are spelled as the schema gives them.
func (s *Session) utf8() bool { return s.Encoding == "" || s.Encoding == "UTF8" }

// Session is what the meaning of a text depends on beside the text itself. It is comparable, so that plans
// are cached by it.
type Session struct {
	Version int    // the server's major version: 12 ... 18
	Role    string // current_user
	// Path is current_schemas(true): where unqualified names are looked for, in order.
	Path rewrite.List
	// Encoding is client_encoding as the server spells it; empty stands for UTF8.
	Encoding string
	// Unsettled names tables that the session may see otherwise than the [Schema] has them, because its open
	// transaction created or changed them: folded names without a schema ([SchemaEffect].CreatesTemp and Changed).
	Unsettled rewrite.List
	// AllUnsettled says that it may see any table otherwise.
	AllUnsettled bool
	// TempTables names, like Unsettled, what the session made temporary tables of, which hide tables of other schemas.
	TempTables rewrite.List
	// Created tells of tables among these that carry isotap's columns, and which columns the client gave them
	// ([Session.Create]): of each table the list of its name and theirs.
	Created rewrite.List
	// Serializable says that the statement runs at SERIALIZABLE, where a wider read takes more predicate
	// locks: one that an index alone might answer goes unchanged (reason "plan").
	Serializable bool
	// Narrow says that what subqueries read is too much to be shown: they are not looked into.
	Narrow bool
	// Nested says that a savepoint may be open: what is written has the id of a subtransaction, which no
	// statement can tell.
	Nested bool
	// Backslashes says that standard_conforming_strings is off.
	Backslashes bool
	// Logged says that the server's own log is read beside: a statement that ends rows without leaving others then
	// tells the id of its transaction, by which the log knows it.
	Logged bool
	// Extended says that the text is that of a Parse message: one statement, perhaps with parameters.
	Extended bool
	// Untyped says that the Parse message leaves all types of parameters to the server.
	Untyped bool
}
