package program

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
)

// A compiler makes a program's parts. Its environment gives each variable the name of the value that it holds.
type compiler struct {
	family dbms.Family
	schema *footprint.Schema
	file   string
	draft  *Draft
	env    map[string]string
	values map[string]int // how many a variable has had
	loops  int            // around what is compiled
}

func compile(b *Builder, family dbms.Family, w *written) error {
	at := &Error{File: w.file, Line: w.line}
	c := compiler{family: family, schema: b.schema, file: w.file, env: map[string]string{}, values: map[string]int{}}
	c.draft = b.Program(w.name, w.short, fmt.Sprintf("%s:%d", w.file, w.line))
	if c.draft == nil {
		at.Err = fmt.Errorf("program %s is there twice", w.name)
		return at
	}
	for _, name := range w.params {
		c.renew(name)
	}
	body, err := new(settler).settle(w.body)
	if err != nil {
		at.Err = fmt.Errorf("program %s: %w", w.name, err)
		return at
	}
	part, fails, err := c.sequence(body)
	if err != nil {
		return err
	}
	if fails {
		at.Err = fmt.Errorf("program %s: every way through it ends with ROLLBACK", w.name)
		return at
	}
	c.draft.Body = part
	return nil
}

// renew gives a variable a new value.
func (c *compiler) renew(name string) {
	c.values[name]++
	c.env[name] = name
	if n := c.values[name]; n > 1 {
		c.env[name] = name + "#" + strconv.Itoa(n)
	}
	if c.loops == 0 {
		c.draft.Single = append(c.draft.Single, c.env[name])
	}
}

// value names what a variable holds. One that was never given a value is a parameter that the header does not name.
func (c *compiler) value(name string) string {
	if c.env[name] == "" {
		loops := c.loops
		c.loops = 0
		c.renew(name)
		c.loops = loops
	}
	return c.env[name]
}

// sequence compiles items that run one after the other; fails says that they end with ROLLBACK.
func (c *compiler) sequence(items []item) (part robust.Sequence, fails bool, err error) {
	for _, it := range items {
		var p robust.Part
		switch it := it.(type) {
		case *statement:
			p, err = c.statement(it)
		case *branch:
			p, fails, err = c.branch(it)
		case *loop:
			p, err = c.loop(it)
		case assignment:
			if it.from != "" {
				c.env[it.to] = c.value(it.from)
			} else {
				c.renew(it.to)
			}
		case end:
			fails = it.rollback
		}
		if err != nil || fails {
			return nil, fails, err
		}
		if p != nil {
			part = append(part, p)
		}
	}
	return part, false, nil
}

func (c *compiler) statement(s *statement) (robust.Part, error) {
	fp, err := footprint.Of(c.family, s.text, c.schema)
	if err != nil {
		return nil, &Error{c.file, s.line, err}
	}
	st := Statement{SQL: s.sql, Text: s.text, Origin: fmt.Sprintf("%s:%d", c.file, s.line), Misses: s.misses}
	for _, name := range s.params {
		st.Params = append(st.Params, c.value(name))
	}
	for _, name := range s.into {
		c.renew(name)
		st.Shown = append(st.Shown, c.env[name])
	}
	return c.draft.Part(fp, st), nil
}

// branch compiles the bodies that do not end with ROLLBACK. What only some of them give a variable is a new value.
func (c *compiler) branch(b *branch) (part robust.Part, fails bool, err error) {
	before := maps.Clone(c.env)
	var choice robust.Choice
	var after []map[string]string
	for _, body := range b.bodies {
		c.env = maps.Clone(before)
		p, fails, err := c.sequence(body)
		if err != nil {
			return nil, false, err
		}
		if !fails {
			choice, after = append(choice, simple(p)), append(after, c.env)
		}
	}
	if len(choice) == 0 {
		return nil, true, nil
	}
	c.env = after[0]
	for _, other := range after[1:] {
		for name := range other {
			if c.env[name] != other[name] {
				c.renew(name)
			}
		}
	}
	return oneOf(choice), false, nil
}

// loop compiles the body, in which each variable that it changes has a new value each time.
func (c *compiler) loop(l *loop) (robust.Part, error) {
	changed := assigned(l.body)
	for _, name := range l.vars {
		changed[name] = true
	}
	c.loops++
	c.renewAll(changed)
	body, _, err := c.sequence(l.body)
	c.loops--
	if err != nil {
		return nil, err
	}
	c.renewAll(changed)
	if len(body) == 0 {
		return nil, nil
	}
	return &robust.Loop{Body: simple(body)}, nil
}

func (c *compiler) renewAll(names map[string]bool) {
	for name := range names {
		c.renew(name)
	}
}

// assigned returns the variables that items give values to.
func assigned(items []item) map[string]bool {
	names := map[string]bool{}
	for _, it := range items {
		switch it := it.(type) {
		case *statement:
			for _, name := range it.into {
				names[name] = true
			}
		case assignment:
			names[it.to] = true
		case *branch:
			for _, body := range it.bodies {
				maps.Copy(names, assigned(body))
			}
		case *loop:
			maps.Copy(names, assigned(it.body))
			for _, name := range it.vars {
				names[name] = true
			}
		}
	}
	return names
}

// simple returns a sequence of one part as that.
func simple(s robust.Sequence) robust.Part {
	switch len(s) {
	case 0:
		return nil
	case 1:
		return s[0]
	}
	return s
}

// oneOf returns a choice, as what is optional where it is between one part and nothing.
func oneOf(c robust.Choice) robust.Part {
	var parts robust.Choice
	nothing := false
	for _, p := range c {
		if p == nil {
			nothing = true
		} else {
			parts = append(parts, p)
		}
	}
	switch {
	case len(parts) == 0:
		return nil
	case len(parts) == 1 && nothing:
		return &robust.Optional{Body: parts[0]}
	case len(parts) == 1:
		return parts[0]
	case nothing:
		parts = append(parts, nil)
	}
	return parts
}
