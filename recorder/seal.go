package recorder

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Each value ends with a checksum of its key and itself, from format 4 on: it tells a value that can be trusted when
// the block or the log around it cannot.

const sealBytes = crc32.Size

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errSeal = errors.New("its checksum does not fit")

// appendSeal appends the checksum of an entry, key and value, which begins at from.
func appendSeal(b []byte, from int) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[from:], castagnoli))
}

// sealed reports whether a value ends with its checksum.
func sealed(key, value []byte) bool {
	n := len(value) - sealBytes
	if n < 0 {
		return false
	}
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value[:n])
	return sum == binary.LittleEndian.Uint32(value[n:])
}

// unseal returns a value without its checksum.
func unseal(key, value []byte) ([]byte, error) {
	if !sealed(key, value) {
		return nil, errSeal
	}
	return value[:len(value)-sealBytes], nil
}
