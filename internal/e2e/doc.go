// Package e2e holds the tests from end to end: real clients speak to real servers through a running isotap (package
// proxyserver), and what they were answered, what the server holds and what was recorded are compared with what happens
// without isotap.
//
// The files of PostgreSQL's tests begin with postgres_.
package e2e
