package mysql

import (
	"strconv"

	"github.com/isotap/isotap/rewrite"
)

// TiDBRowIDDefinition is [RowIDDefinition] for TiDB, which has no invisible columns, and few functions
// that may be a default.
const TiDBRowIDDefinition = rewrite.RowIDColumn + " VARBINARY(64) DEFAULT (uuid())"

// TiDBWListDefinition is [WListDefinition] for TiDB. Unbounded lists are not to be had: a BLOB has no
// default there.
func TiDBWListDefinition(bytes int) string {
	if bytes == 0 {
		bytes = maxTiDBWList
	}
	return rewrite.WListColumn + " VARBINARY(" + strconv.Itoa(bytes) + ") DEFAULT '0'"
}

// maxTiDBWList stands in for an unbounded list: room for some 2,000 tags.
const maxTiDBWList = 32 << 10
