package postgres

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"pgregory.net/rapid"

	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// bodyOf returns the body of a Bind message as pgproto3 writes it.
func bodyOf(t interface{ Fatal(...any) }, m *pgproto3.Bind) []byte {
	raw, err := m.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw[5:]
}

func TestBindIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z]{0,3}`)
		codes := rapid.SliceOfN(rapid.SampledFrom([]int16{0, 1}), 0, 4)
		sent := &pgproto3.Bind{DestinationPortal: name.Draw(t, "portal"), PreparedStatement: name.Draw(t, "statement"),
			ParameterFormatCodes: codes.Draw(t, "formats"), ResultFormatCodes: codes.Draw(t, "codes"),
			Parameters: rapid.SliceOfN(rapid.OneOf(rapid.Just[[]byte](nil), rapid.SliceOfN(rapid.Byte(), 0, 5)), 0, 4).
				Draw(t, "params")}
		body := bodyOf(t, sent)
		b, err := readBind(body, true)
		if err != nil {
			t.Fatal(err)
		}
		if b.portal != sent.DestinationPortal || b.statement != sent.PreparedStatement ||
			!slices.EqualFunc(b.params, sent.Parameters, bytes.Equal) ||
			!slices.Equal(numbersOf(b.codes), sent.ResultFormatCodes) {
			t.Fatalf("%+v is read as %+v", sent, b)
		}
		for i := range sent.Parameters {
			want := int16(0)
			switch n := len(sent.ParameterFormatCodes); {
			case n == 1:
				want = sent.ParameterFormatCodes[0]
			case i < n:
				want = sent.ParameterFormatCodes[i]
			}
			if got := b.format(i); int16(got) != want {
				t.Fatalf("parameter %d of %+v has format %d", i, sent, got)
			}
		}
		for n := range body {
			if _, err := readBind(body[:n], false); !errors.Is(err, errMalformed) {
				t.Fatalf("%d bytes of %d: %v", n, len(body), err)
			}
		}
		if _, err := readBind(append(body, 0), false); !errors.Is(err, errMalformed) {
			t.Fatalf("a byte too many: %v", err)
		}
	})
}

// numbersOf reads format codes, two bytes each.
func numbersOf(codes []byte) (n []int16) {
	for i := 0; i+1 < len(codes); i += 2 {
		n = append(n, int16(codes[i])<<8|int16(codes[i+1]))
	}
	return n
}

// codesOf writes them.
func codesOf(n ...byte) (codes []byte) {
	for _, code := range n {
		codes = append(codes, 0, code)
	}
	return codes
}

// The server wants no format code, one for all columns, or as many as there are columns, isotap's included.
func TestFormatCodesSuitTheWholeResult(t *testing.T) {
	rows := &sqlpostgres.Plan{}
	write := &sqlpostgres.Plan{Result: sqlpostgres.Result{Reply: rewrite.Returning}}
	for _, c := range []struct {
		name   string
		codes  []byte
		plan   *sqlpostgres.Plan
		hidden int
		want   []byte
	}{
		{"none", nil, rows, 2, nil},
		{"one for all", codesOf(1), rows, 2, codesOf(1)},
		{"one a column", codesOf(0, 1), rows, 2, codesOf(0, 1, 1, 1)},
		{"nothing hidden", codesOf(0, 1), rows, 0, codesOf(0, 1)},
		{"a write, one for all", codesOf(1), write, 2, codesOf(1)},
		{"a write, a code that there is not", codesOf(2), write, 2, codesOf(1)},
		{"a write, any number", codesOf(0, 1, 1), write, 2, codesOf(1)},
		{"a write, none", nil, write, 2, codesOf(1)},
	} {
		if got := resultCodes(c.codes, c.plan, c.hidden); !bytes.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v", c.name, got, c.want)
		}
	}
}

func TestFormatCodesMakeRoomForCutColumns(t *testing.T) {
	for _, c := range []struct {
		codes []byte
		cut   []int
		want  []byte
	}{
		{codesOf(1), []int{0}, codesOf(1)},
		{codesOf(1, 1), nil, codesOf(1, 1)},
		{codesOf(1, 1), []int{0}, codesOf(0, 1, 1)},
		{codesOf(1, 1), []int{1, 3}, codesOf(1, 0, 1, 0)},
		{codesOf(1, 1), []int{9}, codesOf(1, 1)},
	} {
		if got := widened(c.codes, c.cut); !bytes.Equal(got, c.want) {
			t.Errorf("%v without %v: %v, not %v", c.codes, c.cut, got, c.want)
		}
	}
}
