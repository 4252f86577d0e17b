// Package library holds isotap's own scenarios: Hermitage's anomalies, figures and examples of papers on isolation,
// bugs of database servers, written for isotap from what those describe, and what helps against some of them. What is
// expected in them was measured; docs/scenarios.md says on which servers.
package library

import "embed"

// Files are the scenarios, by directory: hermitage, papers, bugs and fixes, which say what comes of them, and replbug:
// the 128 bug reports of Moroianu's thesis (ETH 2024), which say by their witness where a server has the bug.
//
//go:embed hermitage papers bugs fixes replbug
var Files embed.FS
