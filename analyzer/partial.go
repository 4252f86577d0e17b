package analyzer

import (
	"cmp"
	"slices"
)

// relate finds the versions behind the relations, in order of the earlier one.
func (o *order) relate() error {
	for _, r := range o.relations {
		v, err := o.version(r.row, r.before)
		if err != nil {
			return err
		}
		w, err := o.version(r.row, r.after)
		if err != nil {
			return err
		}
		o.laterVersions = append(o.laterVersions, laterVersion{v, w})
	}
	slices.SortFunc(o.laterVersions, func(a, b laterVersion) int {
		return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.after, b.after))
	})
	o.laterVersions = slices.Compact(o.laterVersions)
	return nil
}

// laterVersionsOf returns what is only known to come after a version.
func (o *order) laterVersionsOf(v int32) []laterVersion {
	if len(o.laterVersions) == 0 {
		return nil
	}
	from, _ := slices.BinarySearchFunc(o.laterVersions, v,
		func(f laterVersion, v int32) int { return cmp.Compare(f.version, v) })
	to := from
	for to < len(o.laterVersions) && o.laterVersions[to].version == v {
		to++
	}
	return o.laterVersions[from:to]
}

// laterVersionDeps returns the ww that rest on relations.
func (o *order) laterVersionDeps(yield func(dep)) {
	for _, f := range o.laterVersions {
		from, to := o.owner(f.version), o.owner(f.after)
		if from != to && o.state(f.version) == installed && o.state(f.after) == installed {
			yield(dep{from: from, to: to, kind: ww, access: none, version: f.version, next: f.after})
		}
	}
}

// missed returns the rw of a read of version v that rest on relations.
func (o *order) missed(t, read, v int32, yield func(dep)) {
	for _, f := range o.laterVersionsOf(v) {
		if to := o.owner(f.after); to != t && o.state(f.after) == installed {
			yield(dep{from: t, to: to, kind: rw, inexact: o.accesses[read].is(inexact), access: read, version: v,
				next: f.after})
		}
	}
}
