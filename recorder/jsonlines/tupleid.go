package jsonlines

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
)

// tupleID is a [history.TupleID], its fields as PostgreSQL prints them.
type tupleID struct {
	XID     uint32 `json:"xid,omitempty"`
	CTID    string `json:"ctid,omitempty"`
	NewXID  uint32 `json:"new_xid,omitempty"`
	NewCTID string `json:"new_ctid,omitempty"`
	LSN     string `json:"lsn,omitempty"`
	Leaf    uint32 `json:"leaf,omitempty"`
	// Tagged places have the log positions of tags, in Tag and NewTag, where others have ctids.
	Tagged bool   `json:"tagged,omitempty"`
	Tag    string `json:"tag,omitempty"`
	NewTag string `json:"new_tag,omitempty"`
}

func writeTupleID(p *history.TupleID) *tupleID {
	if p.Tagged {
		return &tupleID{Tagged: true, XID: p.XID, Tag: lsnText(p.CTID), NewXID: p.NewXID, NewTag: lsnText(p.NewID),
			LSN: lsnText(p.LSN), Leaf: p.Leaf}
	}
	return &tupleID{XID: p.XID, CTID: ctidText(p.CTID), NewXID: p.NewXID, NewCTID: ctidText(p.NewID),
		LSN:  lsnText(p.LSN),
		Leaf: p.Leaf}
}

func readTupleID(x *tupleID) (p history.TupleID, err error) {
	p = history.TupleID{XID: x.XID, NewXID: x.NewXID, Leaf: x.Leaf, Tagged: x.Tagged}
	parse, id, newID := parseCTID, x.CTID, x.NewCTID
	if x.Tagged {
		parse, id, newID = parseLSN, x.Tag, x.NewTag
	}
	if p.CTID, err = parse(id); err != nil {
		return p, err
	}
	if p.NewID, err = parse(newID); err != nil {
		return p, err
	}
	p.LSN, err = parseLSN(x.LSN)
	return p, err
}

func ctidText(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("(%d,%d)", n>>16, n&0xffff)
}

func parseCTID(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	inner, opened := strings.CutPrefix(s, "(")
	inner, closed := strings.CutSuffix(inner, ")")
	block, offset, ok := strings.Cut(inner, ",")
	b, errBlock := strconv.ParseUint(block, 10, 48)
	o, errOffset := strconv.ParseUint(offset, 10, 16)
	if !opened || !closed || !ok || errBlock != nil || errOffset != nil {
		return 0, fmt.Errorf("ctid %q is not (block,offset)", s)
	}
	return b<<16 | o, nil
}

func lsnText(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%X/%X", n>>32, uint32(n))
}

func parseLSN(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	high, low, ok := strings.Cut(s, "/")
	h, errHigh := strconv.ParseUint(high, 16, 32)
	l, errLow := strconv.ParseUint(low, 16, 32)
	if !ok || errHigh != nil || errLow != nil {
		return 0, fmt.Errorf("lsn %q is not two hexadecimal numbers with a / between", s)
	}
	return h<<32 | l, nil
}
