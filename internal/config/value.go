package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// A value is one setting of some Settings as text. It is a pflag.Value.
type value struct {
	option *Option
	at     any // *string, *bool, *int or *time.Duration
}

func (o *Option) bind(s *Settings) pflag.Value { return value{o, o.value(s)} }

// String returns the setting as [value.Set] reads it.
func (v value) String() string {
	switch at := v.at.(type) {
	case *string:
		return *at
	case *bool:
		return strconv.FormatBool(*at)
	case *int:
		return strconv.Itoa(*at)
	case *time.Duration:
		return at.String()
	}
	return ""
}

// Type names the kind of value in a flag's help.
func (v value) Type() string {
	switch v.at.(type) {
	case *bool:
		return "bool"
	case *int:
		return "number"
	case *time.Duration:
		return "duration"
	}
	if v.option.Choices != nil {
		return strings.Join(v.option.Choices, "|")
	}
	return "string"
}

// Set reads the setting. Its errors name neither the setting nor, for it may hold a password, the text
// of a secret one.
func (v value) Set(text string) error {
	switch at := v.at.(type) {
	case *string:
		if v.option.Choices != nil && !slices.Contains(v.option.Choices, text) {
			return fmt.Errorf("%q is none of %s", text, strings.Join(v.option.Choices, ", "))
		}
		*at = text
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		*at = b
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is no number from 0 on", text)
		}
		*at = n
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is no duration like 10s or 1m30s", text)
		}
		*at = d
	}
	return nil
}
