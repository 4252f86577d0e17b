//go:build linux

package main

import (
	"io"
	"strings"
	"testing"
)

func TestCommandsRepeatWhatWasAsked(t *testing.T) {
	s, err := parse(strings.Fields("-run kills,crowd -engine mariadb -durability relaxed -times 7 -seed 3 -slack 1s -clients 5 -directory x -isotap y"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.campaigns) != 2 {
		t.Fatalf("%d campaigns", len(s.campaigns))
	}
	j := s.campaigns[0].jobs(&s, io.Discard)[0]
	want := "go run ./internal/campaign -run kills -engine mariadb -durability relaxed -times 1 -seed 9 -clients 5 -slack 1s"
	if got := j.command(9, 1); got != want {
		t.Errorf("command = %s\nnot %s", got, want)
	}
}

func TestWrongArgumentsAreNamed(t *testing.T) {
	for arguments, want := range map[string]string{
		"-run kill":          `"kill" is not a list of kills`,
		"-engine mariadb,pg": `"mariadb,pg" is not a list of mariadb, postgresql`,
		"-durability strict": `"strict" is not a list of commit, relaxed`,
		"-victims cat":       `"cat" is not a list of proxy, server, both`,
		"-times -1":          "not negative",
		"-network mesh":      `"mesh" is not a list of relays, namespaces`,
		"-rate 0":            "-rate begins at 1",
		"-target (":          "error parsing regexp",
		"-processes 0":       "-processes is between 1 and",
		"kills":              `unexpected argument "kills"`,
	} {
		var said strings.Builder
		if _, err := parse(strings.Fields(arguments), &said); err == nil || !strings.Contains(said.String(), want) {
			t.Errorf("%s: %v, %s", arguments, err, said.String())
		}
	}
}
