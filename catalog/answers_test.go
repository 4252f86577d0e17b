package catalog

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// TestAnswersOfServersAreBounded has a server say what no server says, in pieces of every length.
func TestAnswersOfServersAreBounded(t *testing.T) {
	packets := func(payloads ...string) (b []byte) {
		for i, p := range payloads {
			b = append(append(b, byte(len(p)), byte(len(p)>>8), byte(len(p)>>16), byte(i+1)), p...)
		}
		return b
	}
	const column, eof = "\x03def\x00\x00\x00\x01x\x01x\x0c\x2d\x00\x0a\x00\x00\x00\xfd\x00\x00\x00\x00\x00",
		"\xfe\x00\x00\x0a\x00"
	for _, test := range []struct {
		name   string
		said   []byte
		refuse string
	}{
		{"an answer", packets("\x01", column, eof, "\x011", eof, "\x01", column, eof, eof), ""},
		{"an answer whose rows end with OK", packets("\x01", column, "\x011", "\xfe\x00\x00\x02\x00\x00\x00\x01i"), ""},
		{"an answer of 4,096 columns", packets("\xfc\x00\x10"), ""},
		{"long rows", packets("\x01", column, eof, "\xfd\x00\x00\x01"+strings.Repeat("a", 1<<16), eof), ""},
		{"2^40 columns", packets("\xfe\x00\x00\x00\x00\x00\x01\x00\x00"), "1099511627776 columns"},
		{"2^40 columns of a second result",
			packets("\x00\x00\x00\x0a\x00\x00\x00", "\xfe\x00\x00\x00\x00\x00\x01\x00\x00"), "1099511627776 columns"},
		{"2^40 columns behind rows", packets("\x01", column, eof, "\x011", eof, "\xfe\x00\x00\x00\x00\x00\x01\x00\x00"),
			"1099511627776 columns"},
		{"2^23 columns", packets("\xfd\x00\x00\x80"), "8388608 columns"},
		{"65,535 columns", packets("\xfc\xff\xff"), "65535 columns"},
		{"rows without end", packets(append([]string{"\x01", column, eof},
			strings.Fields(strings.Repeat("\x08aaaaaaaa ", 20_000))...)...), "more than 131072 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, piece := range []int{1, 3, 7, 1 << 20} {
				a := newAnswers(said{r: bytes.NewReader(test.said), piece: piece}, 1<<17, true)
				if _, err := a.Write([]byte("\x01\x00\x00\x00\x03")); err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(a)
				if test.refuse == "" && (err != nil || !bytes.Equal(got, test.said)) {
					t.Errorf("in pieces of %d: %d of %d bytes, %v", piece, len(got), len(test.said), err)
				}
				if test.refuse != "" && (err == nil || !strings.Contains(err.Error(), test.refuse)) {
					t.Errorf("in pieces of %d: %v", piece, err)
				}
			}
		})
	}
}

// A said is a connection to a server that says something in pieces, whatever it is told.
type said struct {
	net.Conn
	r     io.Reader
	piece int
}

func (s said) Read(p []byte) (int, error)  { return s.r.Read(p[:min(len(p), s.piece)]) }
func (s said) Write(p []byte) (int, error) { return len(p), nil }

// TestAnswersMayBeReadBySeveral: who gives a connection up reads what is left of it while another one still waits. The
// race detector looks on.
func TestAnswersMayBeReadBySeveral(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	a := newAnswers(here, 1<<20, false)
	a.perWrite = true
	go func() {
		defer there.Close()
		go func() { _, _ = io.Copy(io.Discard, there) }()
		for range 200 {
			if _, err := there.Write([]byte("answer")); err != nil {
				return
			}
		}
	}()
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() { _, _ = io.Copy(io.Discard, a) })
	}
	for range 20 {
		if _, err := a.Write([]byte("question")); err != nil {
			break
		}
	}
	readers.Wait()
}
