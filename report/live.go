package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// countsEvery is how long a finding that was shown waits before its count is shown again.
const countsEvery = 10 * time.Second

// A Live writes findings while they are made: each once as [Terminal] would, and then how often it has been seen.
// It is used by one goroutine.
type Live struct {
	w     io.Writer
	opts  TerminalOptions
	shown map[string]time.Time // by finding: when it was shown last
}

// NewLive returns a Live that writes to w.
func NewLive(w io.Writer, opts TerminalOptions) *Live {
	return &Live{w: w, opts: opts.filled(), shown: make(map[string]time.Time)}
}

// News writes what was found by a time. The error is w's.
func (l *Live) News(at time.Time, news []analyzer.News) error {
	t := &terminal{w: bufio.NewWriter(l.w), opts: l.opts}
	for _, n := range news {
		f, clock := n.Finding, at.Format(time.TimeOnly)
		last, known := l.shown[f.ID]
		switch {
		case !known:
			t.line()
			t.line(t.paint(dim, "at "+clock))
			t.finding(f)
		case at.Sub(last) >= countsEvery:
			t.line()
			t.line(t.paint(dim, "at "+clock+"  "), oneLine(string(f.Anomaly)),
				t.paint(dim, "  seen "+times(f.Count)+"  id "+oneLine(f.ID)))
		default:
			continue
		}
		l.shown[f.ID] = at
	}
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write what was found: %w", err)
	}
	return nil
}

// A LiveJSON writes findings while they are made as JSON, one object a line (docs/report-json.md). It is used by one
// goroutine.
type LiveJSON struct {
	enc   *json.Encoder
	clock clock
}

// NewLiveJSON returns a LiveJSON that writes to w about runs.
func NewLiveJSON(w io.Writer) *LiveJSON {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &LiveJSON{enc: enc, clock: newClock(nil)}
}

// Run tells of a run, before what is found in it.
func (l *LiveJSON) Run(info history.Info) { l.clock[info.Run] = info.Started }

// jsonNews is one line. A finding that was told before comes without its programs and the rest.
type jsonNews struct {
	Schema   string        `json:"schema"`
	Time     time.Time     `json:"time"`
	New      bool          `json:"new"`
	ID       string        `json:"id"`
	Anomaly  string        `json:"anomaly"`
	Class    string        `json:"class"`
	Count    int           `json:"count"`
	Programs []jsonProgram `json:"programs,omitempty"`
	Finding  *jsonFinding  `json:"finding,omitempty"`
}

// News writes what was found by a time. The error is w's.
func (l *LiveJSON) News(at time.Time, news []analyzer.News) error {
	for _, n := range news {
		f := n.Finding
		line := jsonNews{Schema: Schema, Time: at.UTC(), New: n.First, ID: f.ID, Anomaly: string(f.Anomaly),
			Class: string(f.Class), Count: f.Count}
		if n.First {
			whole := newJSONFinding(f, l.clock)
			line.Finding = &whole
			for _, p := range f.Programs {
				line.Programs = append(line.Programs, newJSONProgram(p))
			}
		}
		if err := l.enc.Encode(line); err != nil {
			return fmt.Errorf("write what was found: %w", err)
		}
	}
	return nil
}
