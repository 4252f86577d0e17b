package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Settings are a server's variables and what they are set to, in every session of a run.
type Settings map[string]string

// setting is what [ParseSettings] takes: nothing that ends a name or a literal.
var setting = regexp.MustCompile(`^([A-Za-z_][\w.]*)=([^'\\\x00-\x1f]*)$`)

// ParseSettings reads settings as NAME=VALUE. A value has no quotes and no backslashes.
func ParseSettings(texts []string) (Settings, error) {
	var all Settings
	for _, text := range texts {
		parts := setting.FindStringSubmatch(text)
		if parts == nil {
			return nil, fmt.Errorf("%q is no NAME=VALUE without quotes and backslashes", text)
		}
		if all == nil {
			all = make(Settings)
		}
		all[parts[1]] = parts[2]
	}
	return all, nil
}

// check refuses settings that [ParseSettings] would not take.
func (s Settings) check() error {
	for name, value := range s {
		if _, err := ParseSettings([]string{name + "=" + value}); err != nil {
			return fmt.Errorf("settings: %w", err)
		}
	}
	return nil
}

// String returns the settings in the order of their names: "a=1 b=2".
func (s Settings) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all = append(all, name+"="+s[name])
	}
	return strings.Join(all, " ")
}
