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
	// often is how often a site is held back, as a share: where it is not, places behind it have their turn.
	often = 0.75
	// enough is how often sessions meet at a site before it is held back less often, and patience how often nobody may
	// come to it.
	enough   = 8
	patience = 64
	// alone is how many may wait, anywhere, while nobody sends anything, before fewer are held back: clients that take
	// turns do so.
	alone = 16
	// seldom is how often a site is held back at least.
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

// draw chooses whether this visit of the site is held back, and how long, behind so many that have waited while nobody
// sent anything. The same seed chooses the same for a visit of the same number that has the same past.
func (a *site) draw(o Options, lonely uint64) (held bool, length time.Duration) {
	a.visits++
	if chance := a.chance(lonely); a.number(o.Seed, 'h') >= chance {
		return false, 0
	}
	return true, time.Duration(float64(o.Max) * (1 + a.number(o.Seed, 'l')) / 2)
}

// chance is how probable it is that a visit is held back.
func (a *site) chance(lonely uint64) float64 {
	chance := often
	if a.visits == 1 {
		chance = 1
	}
	chance = min(chance, share(enough, a.meets), square(share(patience, a.misses)), square(share(alone, lonely)))
	return max(chance, seldom)
}

// share is that of a bound in a number which exceeds it; 1 where it does not.
func share(bound float64, n uint64) float64 {
	if n == 0 {
		return 1
	}
	return min(1, bound/float64(n))
}

func square(x float64) float64 { return x * x }

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
