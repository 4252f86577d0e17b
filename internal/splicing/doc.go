// Package splicing tests that texts mean through isotap what they mean without it, however they are written: the
// texts of its test are made of what lexers differ on (quotes, comments, semicolons, escapes, character sets, bytes
// that are no text) and are sent to a real server directly and through isotap, in all sql_modes and character sets
// that matter. The replies must be the same byte for byte, the tables the same afterwards, and what reached the server
// must hold the client's own text.
//
// The package has no code but its test, which takes flags:
//
//	go test ./internal/splicing -texts 100000 -seed 0 -timeout 4h
//
// runs 100,000 texts a family from a seed of their own, which is printed.
package splicing
