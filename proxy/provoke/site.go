package provoke

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

// A site is a place in a program at which it is held back: a write by its shape, or the COMMIT behind one. Where
// sessions have met often enough, or nobody comes, it is held back less often.
type site struct {
	shape  string
	visits uint64
	meets  uint64
	misses uint64 // since sessions met there last
}

const (
	// enough is how often sessions meet at a site before it is held back less often, and patience how often nobody may
	// come.
	enough   = 8
	patience = 16
	// often is how often a site is held back before that, as a share: where it is not, places behind it have their
	// turn.
	often = 0.75
	// seldom is how often it is held back at least.
	seldom = 1.0 / 32
	// maxSites bounds how many sites are told apart. All others share one.
	maxSites = 1 << 14
)

// site returns the site of a shape.
func (p *Provoker) site(shape string) *site {
	at := p.sites[shape]
	if at == nil && len(p.sites) >= maxSites {
		shape = ""
		at = p.sites[shape]
	}
	if at == nil {
		at = &site{shape: shape}
		p.sites[shape] = at
	}
	return at
}

func (a *site) met() { a.meets, a.misses = a.meets+1, 0 }

func (a *site) missed() { a.misses++ }

// draw chooses whether this visit of the site is held back, and how long. The same seed chooses the same for a visit of
// the same number that has the same past.
func (a *site) draw(o Options) (held bool, length time.Duration) {
	a.visits++
	if chance := a.chance(); a.number(o.Seed, 'h') >= chance {
		return false, 0
	}
	return true, time.Duration(float64(o.Max) * (1 + a.number(o.Seed, 'l')) / 2)
}

// chance is how probable it is that a visit is held back.
func (a *site) chance() float64 {
	chance := often
	if a.visits == 1 {
		chance = 1
	}
	if a.meets > enough {
		chance = min(chance, enough/float64(a.meets))
	}
	if a.misses > patience {
		chance = min(chance, patience/float64(a.misses))
	}
	return max(chance, seldom)
}

// number draws one from [0, 1), for a purpose.
func (a *site) number(seed uint64, purpose byte) float64 {
	h := fnv.New64a()
	var b [17]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	binary.LittleEndian.PutUint64(b[8:], a.visits)
	b[16] = purpose
	h.Write(b[:])
	h.Write([]byte(a.shape))
	return float64(mix(h.Sum64())>>11) / (1 << 53)
}

// mix spreads what differs in few bits over all of them (SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
