package catalog

// An UnexpectedAnswer is an answer to a query of isotap's own that does not look as it must.
type UnexpectedAnswer struct {
	Purpose string // of the query
	Got     string // what the answer has instead
}

// Error names what was asked for.
func (u *UnexpectedAnswer) Error() string {
	return "asked for " + u.Purpose + ", the server answers with " + u.Got
}
