package recorder

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// chunkBytes bounds what one value holds: a longer transaction is kept in parts. It must be less
// than Badger's value threshold.
const chunkBytes = 256 << 10

// The first byte of a transaction's value, or of a part of one, says what the rest is.
const (
	packPlain = 0 // the bytes themselves
	packZstd  = 1 // a zstd frame of them
	packParts = 2 // how many parts there are under keyChunk, and their length in sum
)

// minPacked is the length under which compressing gains nothing.
const minPacked = 128

// A packer compresses values. It is for one goroutine.
type packer struct{ zstd *zstd.Encoder }

func newPacker() (packer, error) {
	// The window need not hold more than a common transaction, and Badger has checksums.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(64<<10), zstd.WithEncoderCRC(false))
	if err != nil {
		return packer{}, fmt.Errorf("set up compression: %w", err)
	}
	return packer{enc}, nil
}

// pack appends the value for up to chunkBytes of a record.
func (p packer) pack(b, record []byte) []byte {
	at := len(b)
	if len(record) >= minPacked {
		b = p.zstd.EncodeAll(record, append(b, packZstd))
		if len(b)-at <= len(record) {
			return b
		}
		b = b[:at]
	}
	return append(append(b, packPlain), record...)
}

// An unpacker reads what a packer wrote. It is for one goroutine.
type unpacker struct {
	zstd *zstd.Decoder
	buf  []byte
}

func newUnpacker() (*unpacker, error) {
	// The buffer's capacity bounds what a frame may say that it holds.
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("set up decompression: %w", err)
	}
	return &unpacker{zstd: dec, buf: make([]byte, 0, chunkBytes)}, nil
}

func (u *unpacker) close() { u.zstd.Close() }

// unpack returns a value's bytes, which are valid until the next call or as long as the value is.
func (u *unpacker) unpack(value []byte) ([]byte, error) {
	if len(value) == 0 {
		return nil, errShort
	}
	switch value[0] {
	case packPlain:
		return value[1:], nil
	case packZstd:
		record, err := u.zstd.DecodeAll(value[1:], u.buf)
		if err != nil {
			return nil, fmt.Errorf("does not decompress: %w", err)
		}
		return record, nil
	default:
		return nil, fmt.Errorf("has unknown form %d", value[0])
	}
}

// decodeParts reads the rest of a packParts value.
func decodeParts(value []byte) (parts int, size uint64, err error) {
	in := cursor{b: value}
	n, size := in.uvarint(), in.uvarint()
	if err := in.end(); err != nil {
		return 0, 0, err
	}
	if n < 2 || n > 1<<32 || size > n*chunkBytes || size <= (n-1)*chunkBytes {
		return 0, 0, errors.New("has an impossible number of parts")
	}
	return int(n), size, nil
}
