//go:build linux

package main

import (
	"math/rand/v2"
	"testing"
)

// TestCrowdsComeAndGo is the campaign crowd, small.
func TestCrowdsComeAndGo(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	try(t, "-run", "crowd", "-durability", "commit", "-times", "1", "-clients", "200", "-rate", "50")
}

func TestSlopeIsThatOfMostSamples(t *testing.T) {
	values := make([]float64, 600)
	for i := range values {
		values[i] = 1000 + 2*float64(i) + rand.Float64()
		if i%10 == 0 {
			values[i] += 5000
		}
	}
	if got := slope(values); got < 1.9 || got > 2.1 {
		t.Errorf("slope = %v, not 2", got)
	}
	if got := slope(nil); got != 0 {
		t.Errorf("slope of nothing = %v", got)
	}
}
