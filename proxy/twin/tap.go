package twin

// maxTapped is how much of a reply is kept, in bytes.
const maxTapped = 1 << 20

// A Tap keeps what was sent to a client since its last statement ended. Nil keeps nothing.
type Tap struct {
	sent []byte
	from int  // where in the output that is still to be sent the statement's reply begins
	over bool // there was more than is kept
}

// Sent takes output that goes to the client.
func (t *Tap) Sent(output []byte) {
	if t == nil {
		return
	}
	t.keep(output[min(t.from, len(output)):])
	t.from = max(0, t.from-len(output))
}

func (t *Tap) keep(part []byte) {
	if t.over = t.over || len(t.sent)+len(part) > maxTapped; !t.over {
		t.sent = append(t.sent, part...)
	}
}

// Reply returns what the client got, or is about to get, since the last statement ended; output is what is still to be
// sent. It is nil where that is more than is kept, and valid until the next call.
func (t *Tap) Reply(output []byte) []byte {
	if t == nil {
		return nil
	}
	t.keep(output[min(t.from, len(output)):])
	reply := t.sent
	if t.over {
		reply = nil
	}
	t.sent, t.from, t.over = t.sent[:0], len(output), false
	return reply
}

// Lose says that the client has got what the tap has not.
func (t *Tap) Lose() {
	if t != nil {
		t.over, t.from = true, 0
	}
}
