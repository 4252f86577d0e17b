//go:build linux

package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestCablesDoWhatTheirWeatherIs(t *testing.T) {
	const packets = 10_000
	for name, test := range map[string]struct {
		weather  weather
		out      int // packets of all
		changed  int
		slowest  time.Duration
		harmless bool
	}{
		"calm":  {harmless: true, out: packets},
		"lossy": {weather: weather{lost: 0.25}, out: packets * 3 / 4},
		"cut":   {weather: weather{cut: [2]bool{true, false}}},
		"twice": {weather: weather{twice: 0.5}, out: packets * 3 / 2},
		"dirty": {weather: weather{flipped: 0.1}, out: packets, changed: packets / 10},
		"late": {weather: weather{delay: 10 * time.Millisecond, jitter: 20 * time.Millisecond}, out: packets,
			slowest: 30 * time.Millisecond},
		"thin": {weather: weather{rate: 10_000}, out: 51, slowest: maxQueue},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cable{weather: test.weather}
			if !test.harmless {
				c.random = rand.New(rand.NewPCG(1, 0))
			}
			sent := make([]byte, 100)
			out, changed, slowest := 0, 0, time.Duration(0)
			for range packets {
				for _, p := range c.treat(0, sent) {
					out++
					if string(p.bytes) != string(sent) {
						changed++
					}
					slowest = max(slowest, p.late)
				}
			}
			const off = packets / 50
			if out < test.out-off || out > test.out+off || changed < test.changed-off || changed > test.changed+off {
				t.Errorf("%d packets of %d passed, not about %d; %d changed, not about %d", out, packets,
					test.out, changed, test.changed)
			}
			if slowest > test.slowest || slowest < test.slowest*9/10 {
				t.Errorf("the slowest is %v late, not %v", slowest, test.slowest)
			}
		})
	}
}

func TestNamespacesHaveAddressesOfTheirOwn(t *testing.T) {
	seen := make(map[string]bool)
	for _, number := range []int{0, 1, 15, 16, 4095, 4096, 8191} {
		n := namespace{number: number}
		for cable := range 3 {
			for end := range 2 {
				a := n.address(cable, end)
				if seen[a] {
					t.Errorf("%s is there twice", a)
				}
				seen[a] = true
			}
		}
	}
	if !seen["198.18.0.1"] || !seen["198.19.255.250"] {
		t.Errorf("addresses %v", seen)
	}
}
