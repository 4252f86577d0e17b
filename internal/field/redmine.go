package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// redmine keeps projects and issues, in Ruby on Rails, on MariaDB. Debian's package has it without its tests, so that
// the suite are requests to its API.
var redmine = application{name: "redmine", version: "5.0.4", engine: "mariadb", install: installRedmine, prepare: prepareRedmine,
	suite: func(ctx context.Context, dir string, verdicts io.Writer) error {
		return withRedmine(ctx, dir, func(base string) error { return redmineRequests(ctx, base, verdicts) })
	},
	crowd: func(ctx context.Context, dir string, books io.Writer) error {
		return withRedmine(ctx, dir, func(base string) error { return redmineAtOnce(ctx, base, books) })
	}}

// redmineHome is where Debian's package has the program.
func redmineHome(dir string) string { return filepath.Join(dir, "usr", "share", "redmine") }

// installRedmine unpacks Debian's package, and installs what it depends on.
func installRedmine(ctx context.Context, dir string) error {
	home := redmineHome(dir)
	if _, err := os.Stat(filepath.Join(home, "Gemfile.local")); err == nil {
		return nil
	}
	const script = `set -e
apt-get -q update
apt-get -q download redmine
ls redmine_5.0.4-*.deb
dpkg -x redmine_*.deb .
export DEBIAN_FRONTEND=noninteractive
apt-get -q -y --no-install-recommends install puma ruby-mysql2 $(
	apt-cache depends --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances redmine |
	sed -n 's/^ *|\{0,1\}Depends: \([a-z].*\)/\1/p' | grep -v -e redmine -e debconf -e dbconfig)`
	if err := command(ctx, dir, "sh", "-c", script); err != nil {
		return err
	}
	// Links to the system's directories of the package.
	for _, link := range []string{"instances", "Gemfile.lock", "config/database.yml"} {
		if err := os.Remove(filepath.Join(home, link)); err != nil {
			return err
		}
	}
	instance := filepath.Join(home, "instances", "field")
	for _, of := range []string{"config", "tmp", "log", "files"} {
		if err := os.MkdirAll(filepath.Join(instance, of), 0o755); err != nil {
			return err
		}
	}
	database := []byte("production:\n  url: <%= ENV['DATABASE_URL'] %>\n  encoding: utf8mb4\n")
	if err := os.WriteFile(filepath.Join(instance, "config", "database.yml"), database, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, "Gemfile.local"), []byte("gem 'mysql2'\ngem 'puma'\n"), 0o644)
}

// redmineEnv is what its programs are told, of which the database is DATABASE_URL's.
func redmineEnv(dir string) []string {
	return []string{"DATABASE_URL=mysql2://" + strings.TrimPrefix(os.Getenv("DATABASE_URL"), "mysql://"),
		"REDMINE_INSTANCE=field", "RAILS_ENV=production", "SECRET_KEY_BASE=0123456789abcdef", "REDMINE_LANG=en",
		"BUNDLE_GEMFILE=" + filepath.Join(redmineHome(dir), "Gemfile")}
}

// prepareRedmine makes its tables, and lets an administrator use the API.
func prepareRedmine(ctx context.Context, dir string) error {
	const settings = `Setting.rest_api_enabled = 1
User.find_by_login("admin").update_column(:must_change_passwd, false)`
	for _, args := range [][]string{{"rake", "db:migrate"}, {"rake", "redmine:load_default_data"},
		{"bundle", "exec", "rails", "runner", settings}} {
		if err := commandWith(ctx, redmineHome(dir), redmineEnv(dir), "ruby", append([]string{"-S"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// withRedmine starts it, and stops it behind f.
func withRedmine(ctx context.Context, dir string, f func(base string) error) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	base := "http://" + address
	return program{path: "ruby", dir: redmineHome(dir), env: redmineEnv(dir), log: filepath.Join(dir, "redmine.log"),
		ready: base + "/login",
		args:  []string{"-S", "bundle", "exec", "puma", "-e", "production", "-b", "tcp://" + address, "-t", "8:8"},
	}.while(ctx, func() error { return f(base) })
}

// numbered is an answer that names what was made: of each kind one is set.
type numbered struct {
	Project, Issue, User, Version, Group, Membership, Relation struct{ ID int }

	IssueCategory struct{ ID int } `json:"issue_category"`
	TimeEntry     struct{ ID int } `json:"time_entry"`
}

// redmineRequests sends what a team does in a project, twice, one request after the other.
func redmineRequests(ctx context.Context, base string, verdicts io.Writer) error {
	sent := 0
	s := serial{newClient(base, password("admin", "admin")), verdicts, &sent}
	for _, round := range []string{"one", "two"} {
		if err := redmineRound(ctx, s, round); err != nil {
			return err
		}
	}
	return nil
}

// A values is a JSON object.
type values = map[string]any

func redmineRound(ctx context.Context, s serial, round string) error {
	var project, user, group, member, version, category, parent, child, entry, relation numbered
	send := func(method, what, path string, body any, to *numbered) error {
		if to == nil {
			return s.do(ctx, what, method, path, body, nil)
		}
		return s.do(ctx, what, method, path, body, to)
	}
	post := func(what, path string, body any, to *numbered) error {
		return send(http.MethodPost, what, path, body, to)
	}
	put := func(what, path string, body any) error { return send(http.MethodPut, what, path, body, nil) }
	remove := func(what, path string) error { return send(http.MethodDelete, what, path, nil, nil) }
	in := "/projects/" + round
	steps := []func() error{
		func() error {
			return post("create a project", "/projects.json", values{"project": values{"name": round, "identifier": round}}, &project)
		},
		func() error {
			return post("create a user", "/users.json", values{"user": values{"login": "user-" + round, "firstname": round,
				"lastname": "User", "mail": round + "@example.org", "password": "secret-word"}}, &user)
		},
		func() error {
			return post("create a group", "/groups.json", values{"group": values{"name": "group " + round, "user_ids": []int{user.User.ID}}}, &group)
		},
		func() error {
			return post("add a member", in+"/memberships.json", values{"membership": values{"user_id": user.User.ID, "role_ids": []int{3}}}, &member)
		},
		func() error {
			return put("change a member's roles", fmt.Sprintf("/memberships/%d.json", member.Membership.ID),
				values{"membership": values{"role_ids": []int{3, 4}}})
		},
		func() error {
			return post("create a version", in+"/versions.json", values{"version": values{"name": "v1"}}, &version)
		},
		func() error {
			return post("create a category", in+"/issue_categories.json", values{"issue_category": values{"name": "part"}}, &category)
		},
		func() error {
			return post("create an issue", "/issues.json", values{"issue": values{"project_id": project.Project.ID, "subject": "parent",
				"fixed_version_id": version.Version.ID, "category_id": category.IssueCategory.ID}}, &parent)
		},
		func() error {
			return post("create a part of an issue", "/issues.json", values{"issue": values{"project_id": project.Project.ID, "subject": "child",
				"parent_issue_id": parent.Issue.ID, "estimated_hours": 3}}, &child)
		},
		func() error {
			return put("set an issue's progress", fmt.Sprintf("/issues/%d.json", child.Issue.ID),
				values{"issue": values{"done_ratio": 50, "notes": "half of it"}})
		},
		func() error {
			return put("set an issue's status", fmt.Sprintf("/issues/%d.json", child.Issue.ID), values{"issue": values{"status_id": 2}})
		},
		func() error {
			return put("set an issue's subject", fmt.Sprintf("/issues/%d.json", child.Issue.ID), values{"issue": values{"subject": "the child"}})
		},
		func() error {
			return post("log time", "/time_entries.json", values{"time_entry": values{"issue_id": child.Issue.ID, "hours": 1.5, "activity_id": 8}}, &entry)
		},
		func() error {
			return post("watch an issue", fmt.Sprintf("/issues/%d/watchers.json", parent.Issue.ID), values{"user_id": user.User.ID}, nil)
		},
		func() error {
			return post("create another issue", "/issues.json", values{"issue": values{"project_id": project.Project.ID, "subject": "other"}}, &relation)
		},
		func() error {
			return post("relate two issues", fmt.Sprintf("/issues/%d/relations.json", relation.Issue.ID),
				values{"relation": values{"issue_to_id": parent.Issue.ID, "relation_type": "relates"}}, &relation)
		},
		func() error {
			return put("write a wiki page", in+"/wiki/Start.json", values{"wiki_page": values{"text": "h1. Start"}})
		},
		func() error {
			return put("change a wiki page", in+"/wiki/Start.json", values{"wiki_page": values{"text": "h1. Start\n\nMore."}})
		},
		func() error {
			return put("describe a project", in+".json", values{"project": values{"description": "what it is"}})
		},
		func() error {
			return put("rename a project", in+".json", values{"project": values{"name": "project " + round}})
		},
		func() error {
			return put("rename a version", fmt.Sprintf("/versions/%d.json", version.Version.ID), values{"version": values{"name": "v2"}})
		},
		func() error { return remove("remove time", fmt.Sprintf("/time_entries/%d.json", entry.TimeEntry.ID)) },
		func() error { return remove("remove an issue", fmt.Sprintf("/issues/%d.json", child.Issue.ID)) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// redmineAtOnce has two clients ask for the same at once, and counts what is there twice.
func redmineAtOnce(ctx context.Context, base string, books io.Writer) error {
	admin := newClient(base, password("admin", "admin"))
	for _, of := range []struct {
		what  string
		twice func(n int) (there int, err error)
	}{
		{"projects with one identifier", func(n int) (int, error) {
			return redmineTwice(ctx, admin, "/projects.json", values{"project": values{"name": "P", "identifier": fmt.Sprintf("p%d", n)}},
				func() (int, error) {
					return admin.count(ctx, "/projects.json?limit=100", "projects", "identifier", fmt.Sprintf("p%d", n))
				})
		}},
		{"users with one login", func(n int) (int, error) {
			login := fmt.Sprintf("u%d", n)
			return redmineTwice(ctx, admin, "/users.json", values{"user": values{"login": login, "firstname": "F", "lastname": "L",
				"mail": login + "@example.org", "password": "secret-word"}},
				func() (int, error) {
					return admin.count(ctx, "/users.json?limit=100&name="+login, "users", "login", login)
				})
		}},
		{"categories with one name", func(n int) (int, error) {
			name := fmt.Sprintf("c%d", n)
			return redmineTwice(ctx, admin, "/projects/p0/issue_categories.json", values{"issue_category": values{"name": name}},
				func() (int, error) {
					return admin.count(ctx, "/projects/p0/issue_categories.json", "issue_categories", "name", name)
				})
		}},
		{"versions with one name", func(n int) (int, error) {
			name := fmt.Sprintf("v%d", n)
			return redmineTwice(ctx, admin, "/projects/p0/versions.json", values{"version": values{"name": name}},
				func() (int, error) { return admin.count(ctx, "/projects/p0/versions.json", "versions", "name", name) })
		}},
		{"groups with one name", func(n int) (int, error) {
			name := fmt.Sprintf("g%d", n)
			return redmineTwice(ctx, admin, "/groups.json", values{"group": values{"name": name}},
				func() (int, error) { return admin.count(ctx, "/groups.json", "groups", "name", name) })
		}},
	} {
		more := 0
		for n := range redminePairs {
			there, err := of.twice(n)
			if err != nil {
				return fmt.Errorf("%s: %w", of.what, err)
			}
			if there > 1 {
				more++
			}
		}
		fmt.Fprintf(books, "  %s: two in %d of %d\n", of.what, more, redminePairs)
	}
	return nil
}

// redminePairs is how often two requests are sent at once.
const redminePairs = 40

// redmineTwice sends a request twice at once, and returns what count says then.
func redmineTwice(ctx context.Context, c *client, path string, body any, count func() (int, error)) (int, error) {
	send := func() error { return c.call(ctx, http.MethodPost, path, body, nil) }
	if err := unlessRefused(atOnce(send, send)); err != nil {
		return 0, err
	}
	return count()
}
