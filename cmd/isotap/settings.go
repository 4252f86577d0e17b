package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/tap"
	"github.com/isotap/isotap/recorder"
)

// settings are what a proxy needs to know. They come from the configuration file, then from the
// environment, then from the command line; the later wins. configs/isotap.yaml describes them.
type settings struct {
	Upstream           string        `yaml:"upstream"`
	Listen             string        `yaml:"listen"`
	Mode               string        `yaml:"mode"`
	Recording          string        `yaml:"recording"`
	Durability         string        `yaml:"durability"`
	RecordValues       bool          `yaml:"record_values"`
	AllowLocalUpstream bool          `yaml:"allow_local_upstream"`
	Drain              time.Duration `yaml:"drain"`
	LogLevel           string        `yaml:"log_level"`
}

func defaultSettings() settings {
	return settings{Listen: "127.0.0.1:0", Mode: "items", Durability: "relaxed", RecordValues: true, Drain: 10 * time.Second, LogLevel: "info"}
}

// settingsFlags adds the flags of a proxy to c. load gives the settings once c runs.
func settingsFlags(c *cobra.Command, defaults settings) (load func() (settings, error)) {
	var file string
	given := defaults
	f := c.Flags()
	f.StringVar(&file, "config", "", "read settings from this YAML file")
	f.StringVar(&given.Upstream, "upstream", given.Upstream, "the server, as mysql://user:password@host:port/database (environment: ISOTAP_UPSTREAM)")
	f.StringVar(&given.Listen, "listen", given.Listen, "where clients connect: host:port, or unix:/path")
	f.StringVar(&given.Mode, "mode", given.Mode, "items records row reads and writes, off passes bytes through")
	f.StringVar(&given.Recording, "recording", given.Recording, "the recording's directory")
	f.StringVar(&given.Durability, "durability", given.Durability, "commit stores a transaction before its end is acknowledged, relaxed within 200 ms")
	f.BoolVar(&given.RecordValues, "record-values", given.RecordValues, "record the values of literals and parameters")
	f.BoolVar(&given.AllowLocalUpstream, "allow-local-upstream", given.AllowLocalUpstream, "permit a server on this host behind a listener that others can reach")
	f.DurationVar(&given.Drain, "drain", given.Drain, "how long open transactions may go on after SIGTERM")
	f.StringVar(&given.LogLevel, "log-level", given.LogLevel, "debug, info, warn or error")
	return func() (settings, error) {
		s := defaults
		if file != "" {
			if err := readSettings(file, &s); err != nil {
				return s, err
			}
		}
		if url := os.Getenv("ISOTAP_UPSTREAM"); url != "" {
			s.Upstream = url
		}
		overlay(c, &s, given)
		return s, nil
	}
}

// settingsFlag adds --upstream alone. The URL is known once c runs.
func settingsFlag(c *cobra.Command) func() string {
	url := c.Flags().String("upstream", os.Getenv("ISOTAP_UPSTREAM"), "the server, as mysql://user:password@host:port/database (environment: ISOTAP_UPSTREAM)")
	c.Flags().Lookup("upstream").DefValue = ""
	return func() string { return *url }
}

// overlay copies the settings whose flags were given.
func overlay(c *cobra.Command, s *settings, given settings) {
	for flag, set := range map[string]func(){
		"upstream":             func() { s.Upstream = given.Upstream },
		"listen":               func() { s.Listen = given.Listen },
		"mode":                 func() { s.Mode = given.Mode },
		"recording":            func() { s.Recording = given.Recording },
		"durability":           func() { s.Durability = given.Durability },
		"record-values":        func() { s.RecordValues = given.RecordValues },
		"allow-local-upstream": func() { s.AllowLocalUpstream = given.AllowLocalUpstream },
		"drain":                func() { s.Drain = given.Drain },
		"log-level":            func() { s.LogLevel = given.LogLevel },
	} {
		if c.Flags().Changed(flag) {
			set()
		}
	}
}

// readSettings reads a configuration file. A key that isotap does not know is an error.
func readSettings(file string, s *settings) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	err = d.Decode(s)
	var mistakes *yaml.TypeError
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &mistakes):
		// The reader of the message knows settings, not Go types.
		text := strings.ReplaceAll(strings.Join(mistakes.Errors, "; "), "not found in type main.settings", "is not a setting")
		return fmt.Errorf("read the configuration %s: %s", file, text)
	}
	return fmt.Errorf("read the configuration %s: %w", file, err)
}

// options turns the settings into those of a tap.
func (s settings) options() (tap.Options, error) {
	o := tap.Options{Listen: s.Listen, Recording: s.Recording, Args: s.RecordValues, AllowLocal: s.AllowLocalUpstream,
		Drain: s.Drain, Version: isotapVersion()}
	var err error
	if o.Upstream, err = parseUpstream(s.Upstream); err != nil {
		return o, err
	}
	switch s.Mode {
	case "items":
	case "off":
		o.Off = true
	default:
		return o, fmt.Errorf("--mode: %q is neither items nor off", s.Mode)
	}
	if o.Durability, err = recorder.ParseDurability(s.Durability); err != nil {
		return o, err
	}
	if !o.Off && o.Recording == "" {
		return o, errors.New("no directory given for the recording: use --recording DIR")
	}
	o.Logger, err = newLogger(s.LogLevel)
	return o, err
}

func parseUpstream(url string) (catalog.Target, error) {
	if url == "" {
		return catalog.Target{}, errors.New("no server given: use --upstream mysql://user:password@host:port/database, or set ISOTAP_UPSTREAM")
	}
	t, err := catalog.ParseTarget(url)
	if err != nil {
		return t, fmt.Errorf("--upstream: %w", err)
	}
	return t, nil
}

func newLogger(level string) (*zap.Logger, error) {
	l, err := zap.ParseAtomicLevel(level)
	if err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	cfg := zap.NewProductionConfig()
	cfg.Level = l
	cfg.DisableCaller, cfg.DisableStacktrace = true, true
	return cfg.Build()
}
