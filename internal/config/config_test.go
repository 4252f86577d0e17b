package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestExampleFileShowsEverySettingsDefault: the example file shows every setting with its default.
func TestExampleFileShowsEverySettingsDefault(t *testing.T) {
	const example = "../../configs/isotap.yaml"
	s := Default()
	names, err := ReadFile(example, &s)
	if err != nil {
		t.Fatal(err)
	}
	if s != Default() {
		t.Errorf("the example gives %+v, the defaults are %+v", s, Default())
	}
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for i := range Options {
		o := &Options[i]
		if !strings.Contains(string(text), "\n"+o.Name+": ") && !strings.Contains(string(text), "\n# "+o.Name+": ") {
			t.Errorf("the example does not show %s", o.Name)
		}
	}
	if len(names) == 0 {
		t.Error("the example sets nothing")
	}
}

func TestTheGuideListsEverySettingAsItIs(t *testing.T) {
	guide, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range Options {
		o := &Options[i]
		live := ""
		if o.Reloads {
			live = "yes"
		}
		s := Default()
		value := ""
		if text := o.bind(&s).String(); text != "" {
			value = "`" + text + "`"
		}
		if got, want := tableRow(string(guide), "`"+o.Name+"`"), [2]string{value, live}; got != want {
			t.Errorf("docs/operating.md says of %s: default and live %q, want %q", o.Name, got, want)
		}
	}
}

// tableRow returns the second and third cell of the row whose first cell names a setting, perhaps among
// others.
func tableRow(text, name string) [2]string {
	for line := range strings.Lines(text) {
		if cells := strings.Split(line, "|"); len(cells) == 6 && strings.Contains(cells[1], name) {
			return [2]string{strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])}
		}
	}
	return [2]string{"not there", ""}
}

// TestNearestSourceOfASettingWins: every setting may come from anywhere and the nearest wins.
func TestNearestSourceOfASettingWins(t *testing.T) {
	samples := map[string][3]string{ // in the file, the environment, on the command line
		"upstream": {"mysql://a@f/", "mysql://a@e/", "mysql://a@c/"}, "listen": {"f:1", "e:1", "c:1"},
		"mode":      {"off", "items", "off"},
		"recording": {"f", "e", "c"}, "login_timeout": {"1s", "2s", "3s"},
		"durability": {"commit", "relaxed", "commit"}, "server_log": {"off", "require", "off"}, "when_full": {"refuse", "pass", "auto"},
		"drain":        {"1s", "2s", "3s"},
		"row_identity": {"columns", "system", "columns"}, "log_level": {"debug", "warn", "error"},
		"log_sql": {"shape", "full", "shape"},
	}
	for i := range Options {
		o := &Options[i]
		given, ok := samples[o.Name]
		if !ok {
			switch o.value(&Settings{}).(type) {
			case *bool:
				given = [3]string{"true", "false", "true"}
			case *int:
				given = [3]string{"1", "2", "3"}
			default:
				given = [3]string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}
			}
		}
		file := filepath.Join(t.TempDir(), "isotap.yaml")
		if err := os.WriteFile(file, []byte(o.Name+": "+given[0]+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for places, want := range given {
			defaults, into := Default(), Default()
			f := pflag.NewFlagSet("isotap", pflag.ContinueOnError)
			Flags(f, &into)
			if places == 2 {
				if err := f.Parse([]string{"--" + o.Flag() + "=" + given[2]}); err != nil {
					t.Fatal(err)
				}
			}
			lookup := func(name string) string {
				if places > 0 && name == Variable(o.Flag()) {
					return given[1]
				}
				return ""
			}
			if err := FromEnvironment(f, lookup); err != nil {
				t.Fatal(err)
			}
			// What settings say together is not the matter here.
			l, _ := Load(defaults, file, f)
			if got := o.bind(&l.Settings).String(); got != want {
				t.Errorf("%s from the first %d of file, environment, command line: %q, want %q",
					o.Name, places+1, got, want)
			}
		}
	}
}

func TestChangesTellsWhatARunningProxyTakes(t *testing.T) {
	a := Loaded{Settings: Default()}
	b := a
	b.LogLevel, b.Listen, b.Drain = "debug", "127.0.0.1:9", 0
	reload, restart := a.Changes(&b)
	if strings.Join(reload, " ") != "drain log_level" || strings.Join(restart, " ") != "listen" {
		t.Errorf("changes: reload %v, restart %v", reload, restart)
	}
	taken := a.Taking(&b)
	if taken.LogLevel != "debug" || taken.Drain != 0 || taken.Listen != a.Listen {
		t.Errorf("took %+v", taken.Settings)
	}
}

func TestNearestGuessesWhatAMisspelledNameMeant(t *testing.T) {
	names := []string{"analyze", "run", "proxy", "strip"}
	for word, want := range map[string]string{"anlyze": "analyze", "RUN": "run", "rn": "run", "prxoy": "proxy",
		"analyse": "analyze", "zzzzz": "", "x": "", "": ""} {
		if got := Nearest(word, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestMaskedShowsNoPassword(t *testing.T) {
	for url, want := range map[string]string{
		"mysql://app:s3cret@db/shop":                    "mysql://app:***@db:3306/shop",
		"mysql://app@db/shop":                           "mysql://app@db:3306/shop",
		"mysql://a%40b:s3cret@db/shop":                  "mysql://a%40b:***@db:3306/shop",
		"mysql://app:s3cret@unix(/run/x.sock)/shop":     "mysql://app:***@/shop?socket=%2Frun%2Fx.sock",
		"mysql://app:s3cret/shop":                       "(unreadable, not shown)",
		"s3cret":                                        "(unreadable, not shown)",
		"mysql://app:s3%cret@db/shop":                   "(unreadable, not shown)",
		"mysql://app:s3cret@db:notaport/shop?x=y":       "(unreadable, not shown)",
		"mysql://app:p@s3cret:x@db/shop?parseTime=true": "mysql://app:***@db:3306/shop",
	} {
		if got := masked(url); got != want {
			t.Errorf("masked(%q) = %q, want %q", url, got, want)
		}
	}
}
