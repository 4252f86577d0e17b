package binlog

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/isotap/isotap/history"
)

// branches are the transactions that were prepared (XA PREPARE) and have not ended. The log has what they wrote where
// they were prepared, and how they ended where that happened.
type branches map[string]*history.LoggedTxn

// maxBranches bounds them: a coordinator that forgets its branches leaves them for good.
const maxBranches = 10_000

var errShortXA = errors.New("an XA PREPARE event is cut off")

// preparedName reads an XA_PREPARE_LOG_EVENT: whether the branch was prepared or committed at once (ONE PHASE), the
// number of its format, the lengths of the two parts of its name, and these. The name is as it stands in the log's XA
// COMMIT and XA ROLLBACK.
func preparedName(data []byte) (name string, onePhase bool, err error) {
	const head = 1 + 4 + 4 + 4
	if len(data) < head {
		return "", false, errShortXA
	}
	format := binary.LittleEndian.Uint32(data[1:])
	global, branch := uint64(binary.LittleEndian.Uint32(data[5:])), uint64(binary.LittleEndian.Uint32(data[9:]))
	if rest := data[head:]; uint64(len(rest)) < global+branch {
		return "", false, errShortXA
	}
	first := data[head : head+global]
	second := data[head+global : head+global+branch]
	return branchName(fmt.Sprintf("X'%s',X'%s',%d", hex.EncodeToString(first), hex.EncodeToString(second), format)),
		data[0] != 0, nil
}

// branchName returns the name of a branch as the keys of branches are: the server writes it with or without spaces.
func branchName(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), "")) }

// ended takes out the branch that a statement of the log ended, and reports how: nil where the statement is none of
// XA's, or the branch was prepared before the log was read.
func (b branches) ended(query string) (*history.LoggedTxn, bool) {
	for verb, status := range map[string]history.Status{"XA COMMIT": history.Committed, "XA ROLLBACK": history.Aborted} {
		name, ok := strings.CutPrefix(query, verb)
		if !ok {
			continue
		}
		name = branchName(name)
		t := b[name]
		delete(b, name)
		if t != nil {
			t.Status = status
		}
		return t, true
	}
	return nil, false
}
