package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// wordpress keeps a site's pages, in PHP, on MariaDB; every statement is in autocommit. Debian's package has it without
// its tests, so that the suite are requests to its API.
var wordpress = application{name: "wordpress", version: "6.1.9", engine: "mariadb", install: installWordPress,
	prepare: prepareWordPress,
	suite: func(ctx context.Context, dir string, verdicts io.Writer) error {
		return withWordPress(ctx, dir, func(w *wordPress) error { return w.requests(ctx, verdicts) })
	},
	crowd: func(ctx context.Context, dir string, books io.Writer) error {
		return withWordPress(ctx, dir, func(w *wordPress) error { return w.atOnce(ctx, books) })
	}}

func wordPressHome(dir string) string { return filepath.Join(dir, "usr", "share", "wordpress") }

// installWordPress unpacks Debian's package, and installs what it needs of PHP.
func installWordPress(ctx context.Context, dir string) error {
	config := filepath.Join(wordPressHome(dir), "wp-config.php")
	if _, err := os.Stat(config + ".debian"); err == nil {
		return nil
	}
	const script = `set -e
apt-get -q update
apt-get -q download wordpress
ls wordpress_6.1.9*.deb
dpkg -x wordpress_*.deb .
DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install php-cli php-mysql php-getid3`
	if err := command(ctx, dir, "sh", "-c", script); err != nil {
		return err
	}
	if err := os.Rename(config, config+".debian"); err != nil {
		return err
	}
	const settings = `<?php
$database = parse_url(getenv('DATABASE_URL'));
define('DB_NAME', ltrim($database['path'], '/'));
define('DB_USER', $database['user']);
define('DB_PASSWORD', $database['pass'] ?? '');
define('DB_HOST', $database['host'] . ':' . $database['port']);
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('WP_ENVIRONMENT_TYPE', 'local');
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $of) {
	define($of . '_KEY', 'field');
	define($of . '_SALT', 'field');
}
$table_prefix = 'wp_';
require_once __DIR__ . '/wp-settings.php';
`
	return os.WriteFile(config, []byte(settings), 0o644)
}

// prepareWordPress makes its tables and an author.
func prepareWordPress(ctx context.Context, dir string) error {
	const setup = `define('WP_INSTALLING', true);
$_SERVER['HTTP_HOST'] = 'localhost';
require 'wp-load.php';
require 'wp-admin/includes/upgrade.php';
wp_install('Field', 'admin', 'admin@example.org', false, '', 'field-password');`
	return command(ctx, wordPressHome(dir), "php", "-r", setup)
}

// A wordPress is one that runs, with a client of its administrator's.
type wordPress struct {
	dir   string
	base  string
	admin *client
}

// withWordPress starts it, and stops it behind f.
func withWordPress(ctx context.Context, dir string, f func(*wordPress) error) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	key, err := wordPressKey(ctx, dir)
	if err != nil {
		return err
	}
	base := "http://" + address
	return program{path: "php", args: []string{"-S", address, "-t", wordPressHome(dir)}, log: filepath.Join(dir, "wordpress.log"),
		env: []string{"PHP_CLI_SERVER_WORKERS=8"}, ready: base + "/readme.html", stop: syscall.SIGTERM,
	}.while(ctx, func() error {
		return f(&wordPress{dir, base, newClient(base+"/?rest_route=/wp/v2", password("admin", key))})
	})
}

// wordPressKey makes a password for the API.
func wordPressKey(ctx context.Context, dir string) (string, error) {
	const make = `$_SERVER['HTTP_HOST'] = 'localhost';
require 'wp-load.php';
echo 'key=', WP_Application_Passwords::create_new_application_password(1, ['name' => 'field'])[0];`
	c := exec.CommandContext(ctx, "php", "-r", make)
	c.Dir = wordPressHome(dir)
	out, err := c.CombinedOutput()
	_, key, ok := strings.Cut(string(out), "key=")
	if err != nil || !ok {
		return "", fmt.Errorf("make a password for the API: %w: %s", err, out)
	}
	return strings.TrimSpace(key), nil
}

// A made is what an answer says of what was made.
type made struct{ ID int }

// requests sends what authors do, twice, one request after the other.
func (w *wordPress) requests(ctx context.Context, verdicts io.Writer) error {
	sent := 0
	s := serial{w.admin, verdicts, &sent}
	for _, round := range []string{"one", "two"} {
		var post, page, tag, category, comment, user made
		steps := []func() error{
			func() error {
				return s.do(ctx, "create a tag", http.MethodPost, "/tags", values{"name": "tag " + round}, &tag)
			},
			func() error {
				return s.do(ctx, "create a category", http.MethodPost, "/categories", values{"name": "category " + round}, &category)
			},
			func() error {
				return s.do(ctx, "create a user", http.MethodPost, "/users", values{"username": "user" + round,
					"email": round + "@example.org", "password": "secret-word"}, &user)
			},
			func() error {
				return s.do(ctx, "publish a post", http.MethodPost, "/posts", values{"title": "Post " + round, "content": "Text",
					"status": "publish", "tags": []int{tag.ID}, "categories": []int{category.ID}}, &post)
			},
			func() error {
				return s.do(ctx, "publish a page", http.MethodPost, "/pages", values{"title": "Page " + round, "status": "publish"}, &page)
			},
			func() error {
				return s.do(ctx, "comment", http.MethodPost, "/comments", values{"post": post.ID, "content": "first of " + round}, &comment)
			},
			func() error {
				return s.do(ctx, "pin a post", http.MethodPost, fmt.Sprintf("/posts/%d", post.ID), values{"sticky": true}, nil)
			},
			func() error {
				return s.do(ctx, "change a post", http.MethodPost, fmt.Sprintf("/posts/%d", post.ID), values{"title": "New " + round}, nil)
			},
			func() error {
				return s.do(ctx, "change a post's text", http.MethodPost, fmt.Sprintf("/posts/%d", post.ID), values{"content": "More of " + round}, nil)
			},
			func() error {
				return s.do(ctx, "change a comment", http.MethodPost, fmt.Sprintf("/comments/%d", comment.ID), values{"content": "changed " + round}, nil)
			},
			func() error {
				return s.do(ctx, "describe a tag", http.MethodPost, fmt.Sprintf("/tags/%d", tag.ID), values{"description": "of " + round}, nil)
			},
			func() error {
				return s.do(ctx, "name the site", http.MethodPost, "/settings", values{"title": "Site " + round}, nil)
			},
			func() error {
				return s.do(ctx, "rename a user", http.MethodPost, fmt.Sprintf("/users/%d", user.ID), values{"first_name": round}, nil)
			},
			func() error {
				return s.do(ctx, "make a password", http.MethodPost, fmt.Sprintf("/users/%d/application-passwords", user.ID),
					values{"name": "key " + round}, nil)
			},
			func() error {
				return s.do(ctx, "delete a comment", http.MethodDelete, fmt.Sprintf("/comments/%d", comment.ID), nil, nil)
			},
			func() error {
				return s.do(ctx, "delete a page", http.MethodDelete, fmt.Sprintf("/pages/%d", page.ID), nil, nil)
			},
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
	}
	return nil
}

// wordPressPairs is how often requests are sent at once.
const wordPressPairs = 40

// atOnce sends requests two at a time, and counts what its own tables say of them then.
func (w *wordPress) atOnce(ctx context.Context, books io.Writer) error {
	for n := range wordPressPairs {
		var one, two, user made
		post := func(path string, body any, to any) func() error {
			return func() error { return w.admin.call(ctx, http.MethodPost, path, body, to) }
		}
		title := fmt.Sprintf("Post %d", n)
		errs := atOnce(post("/posts", values{"title": title, "status": "publish", "categories": []int{1}}, &one),
			post("/posts", values{"title": title, "status": "publish", "categories": []int{1}}, &two))
		pin := values{"sticky": true}
		errs = append(errs, atOnce(post(fmt.Sprintf("/posts/%d", one.ID), pin, nil), post(fmt.Sprintf("/posts/%d", two.ID), pin, nil))...)
		errs = append(errs, atOnce(post("/comments", values{"post": one.ID, "content": fmt.Sprintf("a %d", n)}, nil),
			post("/comments", values{"post": one.ID, "content": fmt.Sprintf("b %d", n)}, nil))...)
		errs = append(errs, post("/users", values{"username": fmt.Sprintf("u%d", n), "email": fmt.Sprintf("u%d@example.org", n),
			"password": "secret-word"}, &user)())
		keys := fmt.Sprintf("/users/%d/application-passwords", user.ID)
		errs = append(errs, atOnce(post(keys, values{"name": "one"}, nil), post(keys, values{"name": "two"}, nil))...)
		if err := unlessRefused(errs); err != nil {
			return err
		}
	}
	// The application reads its own books: what it keeps counted, and what there is.
	const count = `$_SERVER['HTTP_HOST'] = 'localhost';
require 'wp-load.php';
global $wpdb;
echo 'books=', json_encode([
	'posts with the address of another' => (int) $wpdb->get_var("SELECT COUNT(*) FROM (SELECT 1 FROM wp_posts WHERE post_status = 'publish' AND post_type = 'post' GROUP BY post_name HAVING COUNT(*) > 1) AS d"),
	'posts pinned and not listed as pinned' => (int) $wpdb->get_var("SELECT COUNT(*) FROM wp_posts WHERE post_title LIKE 'Post %' AND post_status = 'publish'") - count(get_option('sticky_posts')),
	'posts whose count of comments is wrong' => (int) $wpdb->get_var("SELECT COUNT(*) FROM wp_posts p WHERE comment_count <> (SELECT COUNT(*) FROM wp_comments c WHERE c.comment_post_ID = p.ID AND comment_approved = '1')"),
	'categories whose count of posts is wrong' => (int) $wpdb->get_var("SELECT COUNT(*) FROM wp_term_taxonomy t WHERE taxonomy = 'category' AND count <> (SELECT COUNT(*) FROM wp_term_relationships r JOIN wp_posts p ON p.ID = r.object_id WHERE r.term_taxonomy_id = t.term_taxonomy_id AND p.post_status = 'publish')"),
	'users one of whose two passwords is gone' => count(array_filter(get_users(['exclude' => [1]]), fn($u) => count(WP_Application_Passwords::get_user_application_passwords($u->ID)) != 2)),
]);`
	c := exec.CommandContext(ctx, "php", "-r", count)
	c.Dir = wordPressHome(w.dir)
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("count in its books: %w: %s", err, out)
	}
	return writeBooks(books, out, wordPressPairs)
}
