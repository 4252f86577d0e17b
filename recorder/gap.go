package recorder

import (
	"context"
	"encoding/binary"

	"github.com/isotap/isotap/history"
)

// addGap adds a stretch in which transactions were not recorded.
func (b *batch) addGap(g *history.Gap) {
	value := binary.AppendVarint(nil, g.From)
	value = binary.AppendVarint(value, g.To)
	value = binary.AppendUvarint(value, g.Txns)
	value = appendText(value, g.Reason)
	b.put(func(k []byte) []byte { return appendNumberKey(k, keyGap, b.run, b.gaps) }, value)
	b.gaps++
}

// loadGaps completes the description of a run.
func (r *Reader) loadGaps(info *history.Info) {
	for key, value := range r.values(context.Background(), appendRunKey(nil, keyGap, info.Run)) {
		g, err := decodeGap(value)
		if err != nil {
			r.own = append(r.own, Damage{keyName(key), -1, err.Error()})
			g.Reason = "unreadable"
		}
		info.Gaps = append(info.Gaps, g)
	}
}

func decodeGap(v value) (g history.Gap, err error) {
	if v.err != nil {
		return g, v.err
	}
	in := cursor{b: v.bytes}
	g.From, g.To = in.varint(), in.varint()
	g.Txns = in.uvarint()
	g.Reason = string(in.text())
	return g, in.end()
}
