// Package catalogue holds isotap's own scenarios: Hermitage's anomalies, the figures of the papers on isolation
// checkers, and bugs of database servers, written for isotap from what those describe. What is expected in them was
// measured; docs/scenarios.md says on which servers.
package catalogue

import "embed"

// Files are the scenarios, by directory: hermitage, papers and bugs.
//
//go:embed hermitage papers bugs
var Files embed.FS
