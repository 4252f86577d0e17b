package config

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/isotap/isotap/internal/dsn"
)

// A Source is where a setting's value comes from, as people read it: "default", "file", the name of
// an environment variable, or that of a flag.
type Source string

// fromVariable marks a flag whose value came from the environment.
const fromVariable = "isotap-environment"

// FromEnvironment gives each flag of f that was not given on the command line the value of its
// environment variable. An empty variable is as good as absent.
func FromEnvironment(f *pflag.FlagSet, lookup func(string) string) error {
	var err error
	f.VisitAll(func(flag *pflag.Flag) {
		name := Variable(flag.Name)
		text := lookup(name)
		if text == "" || flag.Changed || err != nil || flag.Name == "help" {
			return
		}
		if e := flag.Value.Set(text); e != nil {
			err = fmt.Errorf("%s: %w", name, e)
			return
		}
		flag.Changed = true
		flag.Annotations = map[string][]string{fromVariable: {name}}
	})
	return err
}

// Loaded settings know where each of them comes from.
type Loaded struct {
	Settings
	sources map[string]Source // by the option's name; absent: default
}

// Load puts settings together: the defaults, then the file (none when empty), then the flags of f that
// were given, in the environment (see [FromEnvironment]) or on the command line.
func Load(defaults Settings, file string, f *pflag.FlagSet) (Loaded, error) {
	l := Loaded{Settings: defaults, sources: map[string]Source{}}
	if file != "" {
		names, err := ReadFile(file, &l.Settings)
		if err != nil {
			return l, err
		}
		for _, name := range names {
			l.sources[name] = "file"
		}
	}
	for i := range Options {
		o := &Options[i]
		flag := f.Lookup(o.Flag())
		if flag == nil || !flag.Changed {
			continue
		}
		if err := o.bind(&l.Settings).Set(flag.Value.String()); err != nil {
			return l, fmt.Errorf("--%s: %w", o.Flag(), err)
		}
		l.sources[o.Name] = Source("--" + o.Flag())
		if variable := flag.Annotations[fromVariable]; variable != nil {
			l.sources[o.Name] = Source(variable[0])
		}
	}
	return l, l.Check()
}

// Show writes the settings as a configuration file, each with where it comes from. Passwords are not
// shown.
func (l *Loaded) Show(w io.Writer) error {
	var b strings.Builder
	for i := range Options {
		o := &Options[i]
		source := l.sources[o.Name]
		if source == "" {
			source = "default"
		}
		text := o.shown(&l.Settings)
		line := "# " + o.Name + ":"
		if text != "" {
			scalar, err := yaml.Marshal(plainScalar(o, &l.Settings, text))
			if err != nil {
				return fmt.Errorf("show %s: %w", o.Name, err)
			}
			line = o.Name + ": " + strings.TrimSpace(string(scalar))
		}
		fmt.Fprintf(&b, "%-44s # %s\n", line, source)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// plainScalar is the value that YAML prints without needless quotes.
func plainScalar(o *Option, s *Settings, text string) any {
	switch at := o.value(s).(type) {
	case *bool:
		return *at
	case *int:
		return *at
	}
	return text
}

// shown is the setting's text without its password.
func (o *Option) shown(s *Settings) string {
	text := o.bind(s).String()
	if !o.Secret || text == "" {
		return text
	}
	return masked(text)
}

// masked shows a server's address with *** in place of the password. An address that cannot be read
// is not shown: a password may stand anywhere in it.
func masked(url string) string {
	t, err := dsn.Parse(url)
	switch {
	case err != nil:
		return "(unreadable, not shown)"
	case t.Password == "":
		return t.String()
	}
	return strings.Replace(t.String(), "@", ":***@", 1)
}

// Changes names the settings in which l and next differ: those that a running proxy takes, and those
// that need a new start.
func (l *Loaded) Changes(next *Loaded) (reload, restart []string) {
	for i := range Options {
		o := &Options[i]
		switch {
		case o.bind(&l.Settings).String() == o.bind(&next.Settings).String():
		case o.Reloads:
			reload = append(reload, o.Name)
		default:
			restart = append(restart, o.Name)
		}
	}
	return reload, restart
}

// Taking returns l with the settings of next that a running proxy takes.
func (l *Loaded) Taking(next *Loaded) Loaded {
	taken := *l
	for i := range Options {
		if o := &Options[i]; o.Reloads {
			// It was read once, so it can be read again.
			_ = o.bind(&taken.Settings).Set(o.bind(&next.Settings).String())
		}
	}
	return taken
}
