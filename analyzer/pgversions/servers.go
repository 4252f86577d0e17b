package pgversions

import (
	"cmp"
	"math"
	"slices"

	"github.com/isotap/isotap/history"
)

// findServers tells which runs are of one server, and whom every xid belongs to.
func (r *Resolver) findServers() {
	order := make([]int32, len(r.runs))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &r.runs[a].info, &r.runs[b].info
		return cmp.Or(x.Started.Compare(y.Started), cmp.Compare(x.Run, y.Run))
	})
	apart := r.contradicted(order)
	bySystem := make(map[uint64]int32)
	for _, i := range order {
		system := r.runs[i].info.Server.System
		n, ok := bySystem[system]
		if !ok || system == 0 || apart[system] {
			n = r.addServer(&r.runs[i].info)
			bySystem[system] = n
		}
		r.runs[i].server = n
		if xids := r.forgotten[r.runs[i].info.Run]; xids != nil {
			r.servers[n].forgotten = append(r.servers[n].forgotten, xids)
		}
		r.servers[n].began(&r.runs[i].info)
	}
	r.own()
}

// addServer adds the server of a run. Tables of the first one keep their names; those of another are as
// different from them as another incarnation is (see [history.Row]).
func (r *Resolver) addServer(info *history.Info) int32 {
	s := server{horizon: info.Horizon, recent: history.Recent{To: math.MaxUint64}}
	if len(r.servers) > 0 && info.Server.Engine == r.runs[0].info.Server.Engine {
		s.suffix = "@" + info.Run.String()
	}
	r.servers = append(r.servers, s)
	return int32(len(r.servers) - 1)
}

// contradicted finds the system identifiers whose runs, in the order of their start, cannot be of one
// server: copies of the data go on under the same identifier.
func (r *Resolver) contradicted(order []int32) map[uint64]bool {
	apart := make(map[uint64]bool)
	last := make(map[uint64]int32)
	for _, i := range order {
		x := &r.runs[i]
		if p, ok := last[x.info.Server.System]; ok && r.backwards(&r.runs[p], x) {
			apart[x.info.Server.System] = true
		}
		last[x.info.Server.System] = i
	}
	owners := make(map[systemXID]int32)
	for i := range r.writes {
		w := &r.writes[i]
		run := r.txns[w.txn].run
		k := systemXID{r.runs[run].info.Server.System, w.xid}
		if other, ok := owners[k]; ok && other != run && w.xid != 0 {
			apart[k.system] = true
		}
		owners[k] = run
	}
	return apart
}

type systemXID struct {
	system uint64
	xid    uint32
}

// backwards reports whether the counter of transaction ids seems to have gone back between two runs.
func (r *Resolver) backwards(a, b *run) bool {
	if a.info.Horizon == 0 || b.info.Horizon == 0 {
		return false
	}
	if b.info.Horizon < a.info.Horizon {
		return true
	}
	overlap := a.info.Ended.IsZero() || b.info.Started.Before(a.info.Ended)
	return !overlap && a.newest != 0 && !before(a.newest, uint32(b.info.Horizon))
}

// own tells every server's xids whose they are.
func (r *Resolver) own() {
	for i := range r.writes {
		w := &r.writes[i]
		if w.xid == 0 {
			continue
		}
		k := xidKey{r.serverOf(w), w.xid}
		if other, ok := r.owners[k]; ok && other != w.txn {
			r.owners[k] = ambiguous
			continue
		}
		r.owners[k] = w.txn
	}
}

func (r *Resolver) serverOf(w *write) int32 { return r.runs[r.txns[w.txn].run].server }
