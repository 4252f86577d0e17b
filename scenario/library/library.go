// Package library holds isotap's own scenarios: Hermitage's anomalies, figures and examples of papers on isolation,
// bugs of database servers, written for isotap from what those describe, and what helps against some of them. What is
// expected in them was measured; docs/scenarios.md says on which servers.
package library

import "embed"

// Files are the scenarios, by directory: hermitage, papers, bugs and fixes.
//
//go:embed hermitage papers bugs fixes
var Files embed.FS
