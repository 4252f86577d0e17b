//go:build !linux && !darwin

package fuzz

// hold cannot keep other hunts out of a directory here.
func hold(string) (leave func() error, err error) { return func() error { return nil }, nil }
