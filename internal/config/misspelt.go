package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// foreign are the variables that begin as isotap's own do and are none of flags: those of isotap's tests and of its
// throw-away servers, and what Kubernetes tells of a service that is called isotap.
var foreign = regexp.MustCompile(`^ISOTAP_(TEST_.*|TESTDB_STARTER|MYSQLD|SERVICE_(HOST|PORT(_.*)?)|` +
	`PORT(_[0-9]+_(TCP|UDP|SCTP)(_.*)?)?)$`)

// Misspelt returns what is wrong with an environment's variables: one that looks like the variable of a flag and is the
// variable of none of them.
func Misspelt(environ, flags []string) error {
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, Variable("")) || foreign.MatchString(name) ||
			slices.ContainsFunc(flags, func(flag string) bool { return Variable(flag) == name }) {
			continue
		}
		flag := strings.ReplaceAll(strings.TrimPrefix(name, Variable("")), "_", "-")
		if like := Nearest(flag, flags); like != "" {
			return fmt.Errorf("the environment has %s, which isotap does not know: did you mean %s?", name, Variable(like))
		}
		return fmt.Errorf("the environment has %s, which isotap does not know: no verb has a flag --%s", name,
			strings.ToLower(flag))
	}
	return nil
}
