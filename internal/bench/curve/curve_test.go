package main

import "testing"

func TestMeasuresHistories(t *testing.T) {
	for name, analyse := range map[string]func(*meter) error{
		"in memory": func(m *meter) error { return inMemory(m, 2000, 20) },
		"on disk":   func(m *meter) error { return onDisk(t.Context(), m, 2000, 20) },
	} {
		var m meter
		if err := analyse(&m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if m.wall <= 0 || m.bytes <= 0 {
			t.Errorf("%s: measured %+v", name, m)
		}
	}
}

func TestPrintsThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 10_000_001: "10,000,001"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is printed as %s", n, got)
		}
	}
}
