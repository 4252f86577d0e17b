// Package binlog reads the binary log of a server of the MySQL family (MariaDB, MySQL) as a witness of what was
// written, by whomever. It needs the log in the form of rows with whole images, and switches nothing on.
//
// Identities come out of the images: isotap_rowid and isotap_wlist are invisible columns, and are part of them. A write
// after which isotap_wlist ends with the tag that it ended with before is one that somebody made without isotap. The
// log gives columns by their places, so the catalog is asked for their names; where it no longer knows the table that a
// write was of, the write's row is not known.
//
// source.go opens the log where requirements.go finds nothing missing, stream.go gives what it has, assembly.go makes
// transactions of events, tables.go knows where the columns are, branches.go keeps what was prepared (XA), and clock.go
// tells when a transaction had ended by the clock of isotap's run. position.go compares places in the log.
//
// The events are read by go-mysql; their format is that of
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication.html and
// https://mariadb.com/kb/en/replication-protocol/.
package binlog
