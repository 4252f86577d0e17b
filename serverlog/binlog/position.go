package binlog

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A position is a place in the binary log: the end of what is before it.
type position struct {
	file   string // as mariadb-bin.000001: the number counts the files
	offset uint64
}

// String returns the position as the server's statements show it.
func (p position) String() string { return fmt.Sprintf("%s:%d", p.file, p.offset) }

// compare returns which of two positions of one log comes first.
func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(fileNumber(p.file), fileNumber(q.file)), cmp.Compare(p.offset, q.offset))
}

// fileNumber returns the number at the end of a file's name.
func fileNumber(file string) uint64 {
	n, _ := strconv.ParseUint(file[strings.LastIndexByte(file, '.')+1:], 10, 64)
	return n
}
