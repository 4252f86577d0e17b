package recorder

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// runInfo is history.Info as the recording holds it.
type runInfo struct {
	Started           time.Time   `json:"started"`
	Ended             *time.Time  `json:"ended,omitempty"`
	Isotap            string      `json:"isotap"`
	Mode              string      `json:"mode"`
	Engine            dbms.Engine `json:"engine"`
	Version           string      `json:"version"`
	SnapshotIsolation bool        `json:"snapshot_isolation"`
	System            uint64      `json:"system,omitempty"`
	Horizon           uint64      `json:"horizon,omitempty"`
	RecentFrom        uint64      `json:"recent_from,omitempty"`
	RecentTo          uint64      `json:"recent_to,omitempty"`
	Running           []uint64    `json:"running,omitempty"`
	Columns           bool        `json:"columns,omitempty"`
	Rewritten         []string    `json:"rewritten,omitempty"`
	PutBack           bool        `json:"put_back,omitempty"`
	Untested          uint64      `json:"untested,omitempty"`
	BeyondBound       uint64      `json:"beyond,omitempty"`
	Damaged           bool        `json:"damaged,omitempty"`    // when it was restored
	Unreadable        uint64      `json:"unreadable,omitempty"` // likewise
}

func encodeInfo(info *history.Info) ([]byte, error) {
	r := runInfo{
		Started: info.Started, Isotap: info.Isotap, Mode: info.Mode,
		Engine: info.Server.Engine, Version: info.Server.Version, SnapshotIsolation: info.Server.SnapshotIsolation,
		System: info.Server.System, Horizon: info.Horizon, RecentFrom: info.Recent.From, RecentTo: info.Recent.To,
		Running: info.Recent.Running, Columns: info.Columns, Rewritten: info.Rewritten,
		PutBack: info.PutBack, Untested: info.Untested, BeyondBound: info.BeyondBound, Damaged: info.Damaged, Unreadable: info.Unreadable,
	}
	if !info.Ended.IsZero() {
		r.Ended = &info.Ended
	}
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("describe run: %w", err)
	}
	return b, nil
}

func decodeInfo(run history.Run, b []byte) (history.Info, error) {
	var r runInfo
	if err := json.Unmarshal(b, &r); err != nil {
		return history.Info{}, fmt.Errorf("description of run %s: %w", run, err)
	}
	info := history.Info{
		Run: run, Started: r.Started, Isotap: r.Isotap, Mode: r.Mode, Horizon: r.Horizon,
		Recent: history.Recent{From: r.RecentFrom, To: r.RecentTo, Running: r.Running}, Columns: r.Columns,
		Rewritten: r.Rewritten, PutBack: r.PutBack, Untested: r.Untested, BeyondBound: r.BeyondBound,
		Damaged: r.Damaged, Unreadable: r.Unreadable,
		Server: history.Server{Engine: r.Engine, Version: r.Version, SnapshotIsolation: r.SnapshotIsolation,
			System: r.System},
	}
	if r.Ended != nil {
		info.Ended = *r.Ended
	}
	return info, nil
}
