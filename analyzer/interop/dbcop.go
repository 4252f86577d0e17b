package interop

import (
	"bufio"
	"encoding/json"
	"io"

	"github.com/isotap/isotap/history"
)

// A dbcop reads sessions, each an array of transactions: alone, or as the data of an object. A transaction is
// {"events": [...], "committed": true}; an event is {"Read": {"variable": 0, "version": 1}}, {"Write": ...},
// ["r", 0, 1] or ["w", 0, 1], where version null is a read of what was there before. The form of 2019 is
// read, too: {"events": [{"write": true, "variable": 0, "value": 1, "success": true}], "success": true}, where a zero
// that nobody wrote was there before.
type dbcop struct {
	h    *History
	file *jsonFile
	tree tree
	ops  []registerOp
}

func (h *History) readDBCop(r *bufio.Reader) error {
	d := &dbcop{h: h, file: newJSONFile(r)}
	begin := d.file.position()
	token, err := d.file.dec.Token()
	switch {
	case err == io.EOF:
		return at(begin, "the file is empty")
	case err != nil:
		return d.file.fail(err)
	case token == json.Delim('{'):
		err = d.object()
	case token == json.Delim('['):
		err = d.sessions()
	default:
		return at(begin, "%v is no history: an array of sessions, or an object with such as its data", token)
	}
	if err != nil {
		return err
	}
	if err := d.file.finish(); err != io.EOF {
		return err
	}
	if len(h.txns) == 0 {
		return at(position{1, 1}, "%w", errNoTxns)
	}
	return nil
}

// object reads the fields of the object around the sessions, of which only these matter.
func (d *dbcop) object() error {
	for d.file.dec.More() {
		key, err := d.file.dec.Token()
		if err != nil {
			return d.file.fail(err)
		}
		if key != "data" {
			if err := d.file.value(&d.tree); err != nil {
				return err
			}
			continue
		}
		if err := d.file.open('[', "the array of sessions"); err != nil {
			return err
		}
		if err := d.sessions(); err != nil {
			return err
		}
	}
	return d.file.close()
}

// sessions reads up to the end of their array.
func (d *dbcop) sessions() error {
	for d.file.dec.More() {
		if err := d.file.open('[', "a session's array of transactions"); err != nil {
			return err
		}
		session := d.h.session()
		for d.file.dec.More() {
			if err := d.file.value(&d.tree); err != nil {
				return err
			}
			if err := d.transaction(d.tree.root(), session); err != nil {
				return err
			}
		}
		if err := d.file.close(); err != nil {
			return err
		}
	}
	return d.file.close()
}

func (d *dbcop) transaction(r ref, session int32) error {
	f, err := fieldsOf(r, "a transaction", "events", "committed", "success")
	if err != nil {
		return err
	}
	events, committed := f[0], f[1]
	if committed.t == nil {
		committed = f[2]
	}
	if events.t == nil || events.kind() != vector || committed.t == nil || committed.kind() != boolean {
		return at(r.position(), "a transaction has an array of events, and says whether it is committed")
	}
	d.ops = d.ops[:0]
	for e := range events.items() {
		if err := d.event(e); err != nil {
			return err
		}
	}
	status := history.Aborted
	if string(committed.text()) == "true" {
		status = history.Committed
	}
	t := d.h.begin(session, r.position(), 0)
	if err := d.h.fill(t, r.position(), status, 0); err != nil {
		return err
	}
	for _, o := range d.ops {
		if err := d.h.addRegisterOp(t, o); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf returns the named fields of an object, which has no others.
func fieldsOf(r ref, what string, names ...string) ([]ref, error) {
	fields := make([]ref, len(names))
	if r.kind() != mapping {
		return nil, at(r.position(), "%v is %s, and not %s: an object", r, r.kind(), what)
	}
next:
	for key, value := range r.fields() {
		for i, name := range names {
			if !key.named(name) {
				continue
			}
			if fields[i].t != nil {
				return nil, at(key.position(), "%s stands twice in %s", name, what)
			}
			fields[i] = value
			continue next
		}
		return nil, at(key.position(), "%s has no field %v", what, key)
	}
	return fields, nil
}

func (d *dbcop) event(r ref) error {
	if r.kind() == vector {
		return d.tuple(r)
	}
	f, err := fieldsOf(r, "an event", "Read", "Write", "write", "variable", "value", "success")
	if err != nil {
		return err
	}
	if f[2].t != nil {
		return d.flagged(r, f[2], f[3], f[4], f[5])
	}
	body, write := f[0], false
	if body.t == nil {
		body, write = f[1], true
	}
	if body.t == nil || count(r) != 2 {
		return at(r.position(), "an event is one Read or Write")
	}
	parts, err := fieldsOf(body, "a Read or Write", "variable", "version")
	if err != nil {
		return err
	}
	return d.add(r, write, parts[0], parts[1])
}

// tuple reads ["r", variable, version].
func (d *dbcop) tuple(r ref) error {
	var parts []ref
	for p := range r.items() {
		parts = append(parts, p)
	}
	if len(parts) != 3 || !parts[0].named("r") && !parts[0].named("w") {
		return at(r.position(), "%v is no event: [\"r\", variable, version] or [\"w\", ...]", r)
	}
	return d.add(r, parts[0].named("w"), parts[1], parts[2])
}

// flagged reads an event of the form of 2019. One without success did not take place.
func (d *dbcop) flagged(r, write, variable, value, success ref) error {
	if success.t == nil || success.kind() != boolean || write.kind() != boolean {
		return at(r.position(), "an event says by write and success whether it is a write and took place")
	}
	d.h.zeroIsInitial = true
	if string(success.text()) != "true" {
		return nil
	}
	return d.add(r, string(write.text()) == "true", variable, value)
}

func (d *dbcop) add(r ref, write bool, variable, version ref) error {
	if variable.t == nil || version.t == nil {
		return at(r.position(), "an event has a variable and a version")
	}
	if variable.kind() != integer && variable.kind() != text {
		return at(variable.position(), "variable %v is neither an integer nor a string", variable)
	}
	o := registerOp{write: write, key: d.h.key(variable.appendText(nil)), value: none, place: r.position()}
	switch {
	case version.kind() == integer:
		o.value = d.h.integer(version.num())
	case version.kind() != null || write:
		return at(version.position(), "version %v is no 64-bit integer", version)
	}
	d.ops = append(d.ops, o)
	return nil
}
