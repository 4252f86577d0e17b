package recorder

import (
	"encoding/binary"
	"fmt"

	"github.com/isotap/isotap/history"
)

// The key spaces. All numbers in keys are big endian, so that keys sort by run, session and counter;
// counters of one session grow with time.
const (
	keyRun        = 'r' // run: the run's Info, as JSON
	keyCount      = 'n' // run: how many transactions of the run the recording holds
	keySession    = 's' // run, session: a session
	keyTxn        = 't' // run, session, counter: a transaction
	keyChunk      = 'c' // run, session, counter, number: a part of a transaction's value
	keyText       = 'x' // run, session, counter, number: a statement of a transaction, with all of its values
	keyString     = 'd' // run, number: a string of the run's dictionary
	keyMatches    = 'm' // run, number: history.Matches
	keyDefinition = 'f' // run, number: history.Definition
	keyDefined    = 'q' // run, number: a transaction that only defines
	keyGap        = 'g' // run, number: history.Gap
	keyLogged     = 'l' // run, number: history.LoggedTxn, or a part of one
	keyStretch    = 'w' // run, number: history.LogStretch
)

func appendRunKey(b []byte, space byte, run history.Run) []byte {
	return binary.BigEndian.AppendUint32(append(b, space), uint32(run))
}

func appendSessionKey(b []byte, space byte, run history.Run, id history.SessionID) []byte {
	return binary.BigEndian.AppendUint32(appendRunKey(b, space, run), uint32(id))
}

func appendTxnKey(b []byte, space byte, id history.TxnID, session history.SessionID) []byte {
	return binary.BigEndian.AppendUint32(appendSessionKey(b, space, id.Run(), session), id.Seq())
}

func appendChunkKey(b []byte, id history.TxnID, session history.SessionID, number int) []byte {
	return binary.BigEndian.AppendUint32(appendTxnKey(b, keyChunk, id, session), uint32(number))
}

func appendTextKey(b []byte, id history.TxnID, session history.SessionID, number uint32) []byte {
	return binary.BigEndian.AppendUint32(appendTxnKey(b, keyText, id, session), number)
}

func appendNumberKey(b []byte, space byte, run history.Run, number uint32) []byte {
	return binary.BigEndian.AppendUint32(appendRunKey(b, space, run), number)
}

// maxKeyNumbers is how many numbers the longest key holds.
const maxKeyNumbers = 4

// keyNumbers returns the numbers of a key that must hold n of them.
func keyNumbers(key []byte, n int) (numbers [maxKeyNumbers]uint32, err error) {
	if n > maxKeyNumbers || len(key) != 1+4*n {
		return numbers, fmt.Errorf("key %x has %d bytes instead of %d", key, len(key), 1+4*n)
	}
	for i := range n {
		numbers[i] = binary.BigEndian.Uint32(key[1+4*i:])
	}
	return numbers, nil
}

// keyName describes a key in error messages.
func keyName(key []byte) string {
	if len(key) == 0 {
		return "empty key"
	}
	n := (len(key) - 1) / 4
	numbers, err := keyNumbers(key, n)
	if err != nil {
		return fmt.Sprintf("key %x", key)
	}
	switch run := func() history.Run { return history.Run(numbers[0]) }; {
	case key[0] == keyTxn && n == 3:
		return fmt.Sprintf("transaction %s of session %d", history.MakeTxnID(run(), numbers[2]), numbers[1])
	case key[0] == keyChunk && n == 4:
		return fmt.Sprintf("part %d of transaction %s of session %d", numbers[3], history.MakeTxnID(run(), numbers[2]),
			numbers[1])
	case key[0] == keyText && n == 4:
		return fmt.Sprintf("text of statement %d in transaction %s of session %d", numbers[3],
			history.MakeTxnID(run(), numbers[2]), numbers[1])
	case key[0] == keySession && n == 2:
		return fmt.Sprintf("session %d of run %s", numbers[1], run())
	case key[0] == keyString && n == 2:
		return fmt.Sprintf("string %d of run %s", numbers[1], run())
	case key[0] == keyMatches && n == 2:
		return fmt.Sprintf("matches %d of run %s", numbers[1], run())
	case key[0] == keyDefinition && n == 2:
		return fmt.Sprintf("definition %d of run %s", numbers[1], run())
	case key[0] == keyDefined && n == 2:
		return fmt.Sprintf("defining transaction %d of run %s", numbers[1], run())
	case key[0] == keyGap && n == 2:
		return fmt.Sprintf("gap %d of run %s", numbers[1], run())
	case key[0] == keyLogged && n == 2:
		return fmt.Sprintf("transaction %d of the server's log in run %s", numbers[1], run())
	case key[0] == keyStretch && n == 2:
		return fmt.Sprintf("stretch %d of the server's log in run %s", numbers[1], run())
	case key[0] == keyRun && n == 1:
		return fmt.Sprintf("description of run %s", run())
	case key[0] == keyCount && n == 1:
		return fmt.Sprintf("count of run %s", run())
	}
	return fmt.Sprintf("key %x", key)
}
