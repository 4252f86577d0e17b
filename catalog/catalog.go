// Package catalog is what reading the catalogs of both families has in common: what may be asked for when isotap's
// columns are put on tables ([Options], [Result]), and how much a server may answer to isotap's own questions
// ([Answers], [UnexpectedAnswer]).
//
// Packages catalog/mysql and catalog/postgres read.
package catalog
