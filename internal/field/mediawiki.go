package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// mediawiki is the wiki of Wikipedia, in PHP, on MariaDB. Debian's package has it without its tests, so that the suite
// are requests to its API.
var mediawiki = application{name: "mediawiki", version: "1.39.17", engine: "mariadb", install: installMediaWiki,
	prepare: prepareMediaWiki,
	suite: func(ctx context.Context, dir string, verdicts io.Writer) error {
		return withMediaWiki(ctx, dir, func(w *wiki) error { return w.requests(ctx, verdicts) })
	},
	crowd: func(ctx context.Context, dir string, books io.Writer) error {
		return withMediaWiki(ctx, dir, func(w *wiki) error { return w.atOnce(ctx, books) })
	}}

func mediaWikiHome(dir string) string { return filepath.Join(dir, "usr", "share", "mediawiki") }

// installMediaWiki unpacks Debian's package, and installs what it needs of PHP.
func installMediaWiki(ctx context.Context, dir string) error {
	settings := filepath.Join(mediaWikiHome(dir), "LocalSettings.php")
	if _, err := os.Lstat(filepath.Join(mediaWikiHome(dir), "index.php")); err == nil {
		if _, err := os.Lstat(settings); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	const script = `set -e
apt-get -q update
apt-get -q download mediawiki mediawiki-classes
ls mediawiki_1%3a1.39.17*.deb
for d in *.deb; do dpkg -x $d .; done
DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install php-cli php-mysql php-intl php-mbstring php-xml`
	if err := command(ctx, dir, "sh", "-c", script); err != nil {
		return err
	}
	return os.Remove(settings) // a link to the system's
}

const mediaWikiPassword = "field-password"

// mediaWikiSettings come behind those that its installer writes.
const mediaWikiSettings = `
$database = parse_url(getenv('DATABASE_URL'));
$wgDBserver = $database['host'] . ':' . $database['port'];
$wgDBname = ltrim($database['path'], '/');
$wgServer = getenv('WIKI_URL') ?: 'http://localhost';
$wgMainCacheType = CACHE_NONE;
$wgJobRunRate = 0;
$wgRateLimits = [];
$wgPasswordAttemptThrottle = false;
`

// prepareMediaWiki runs its installer. The wiki finds its database in DATABASE_URL afterwards.
func prepareMediaWiki(ctx context.Context, dir string) error {
	database, err := url.Parse(os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	settings := filepath.Join(dir, "LocalSettings.php")
	if err := os.Remove(settings); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	word, _ := database.User.Password()
	if err := command(ctx, mediaWikiHome(dir), "php", "maintenance/install.php", "--dbtype=mysql", "--dbserver="+database.Host,
		"--dbname="+strings.TrimPrefix(database.Path, "/"), "--dbuser="+database.User.Username(), "--dbpass="+word, "--scriptpath=",
		"--server=http://localhost", "--confpath="+dir, "--pass="+mediaWikiPassword, "Field", "Admin"); err != nil {
		return err
	}
	f, err := os.OpenFile(settings, os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(mediaWikiSettings)
	return errors.Join(err, f.Close())
}

// A wiki is one that runs, with its administrator's client.
type wiki struct {
	dir   string
	admin *editor
}

// An editor is a client of the API who is logged in.
type editor struct {
	*client
	token string // for what changes something
}

func withMediaWiki(ctx context.Context, dir string, f func(*wiki) error) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	base := "http://" + address
	return program{path: "php", args: []string{"-S", address, "-t", mediaWikiHome(dir)}, log: filepath.Join(dir, "mediawiki.log"),
		env:   []string{"PHP_CLI_SERVER_WORKERS=8", "MW_CONFIG_FILE=" + filepath.Join(dir, "LocalSettings.php"), "WIKI_URL=" + base},
		ready: base + "/COPYING", stop: syscall.SIGTERM,
	}.while(ctx, func() error {
		admin, err := loginToMediaWiki(ctx, base)
		if err != nil {
			return err
		}
		return f(&wiki{dir, admin})
	})
}

func loginToMediaWiki(ctx context.Context, base string) (*editor, error) {
	e := &editor{client: newClient(base, nil)}
	var tokens struct {
		Query struct {
			Tokens struct{ Logintoken, Csrftoken string }
		}
	}
	if err := e.act(ctx, "query", values{"meta": "tokens", "type": "login"}, &tokens); err != nil {
		return nil, err
	}
	if err := e.act(ctx, "login", values{"lgname": "Admin", "lgpassword": mediaWikiPassword, "lgtoken": tokens.Query.Tokens.Logintoken},
		nil); err != nil {
		return nil, err
	}
	if err := e.act(ctx, "query", values{"meta": "tokens"}, &tokens); err != nil {
		return nil, err
	}
	e.token = tokens.Query.Tokens.Csrftoken
	return e, nil
}

// act asks for an action. An error in the answer is a [refusal].
func (e *editor) act(ctx context.Context, action string, parameters values, to any) error {
	form := url.Values{"action": {action}, "format": {"json"}, "formatversion": {"2"}}
	if e.token != "" {
		form.Set("token", e.token)
	}
	for name, value := range parameters {
		form.Set(name, fmt.Sprint(value))
	}
	var answer json.RawMessage
	if err := e.send(ctx, "/api.php", form, &answer); err != nil {
		return err
	}
	var failed struct{ Error *struct{ Code, Info string } }
	if err := json.Unmarshal(answer, &failed); err != nil {
		return err
	}
	if failed.Error != nil {
		return &refusal{action, 200, failed.Error.Code + ": " + failed.Error.Info}
	}
	if to == nil {
		return nil
	}
	return json.Unmarshal(answer, to)
}

// requests sends what editors do, twice, one request after the other.
func (w *wiki) requests(ctx context.Context, verdicts io.Writer) error {
	sent := 0
	for _, round := range []string{"one", "two"} {
		page := "Page " + round
		for _, step := range []struct {
			what, action string
			parameters   values
		}{
			{"create an account", "createaccount", values{"username": "User " + round, "password": "secret-word-1", "retype": "secret-word-1",
				"createreturnurl": "http://localhost/"}},
			{"create a page", "edit", values{"title": page, "text": "Text of " + round + " [[Category:C]]"}},
			{"change a page", "edit", values{"title": page, "text": "More of " + round + " [[Category:C]]"}},
			{"add to a page", "edit", values{"title": page, "appendtext": "\n\nand more"}},
			{"create another page", "edit", values{"title": page + " other", "text": "See [[" + page + "]]. [[Category:C]]"}},
			{"watch a page", "watch", values{"titles": page}},
			{"protect a page", "protect", values{"title": page, "protections": "edit=sysop", "expiry": "infinite"}},
			{"unprotect a page", "protect", values{"title": page, "protections": "edit=all"}},
			{"move a page", "move", values{"from": page, "to": "Moved " + round}},
			{"block a user", "block", values{"user": "192.0.2." + map[string]string{"one": "1", "two": "2"}[round], "expiry": "1 day"}},
			{"unblock a user", "unblock", values{"user": "192.0.2." + map[string]string{"one": "1", "two": "2"}[round]}},
			{"set an option", "options", values{"change": "nickname=" + round}},
			{"delete a page", "delete", values{"title": page + " other"}},
			{"restore a page", "undelete", values{"title": page + " other"}},
		} {
			sent++
			err := w.admin.act(ctx, step.action, step.parameters, nil)
			how := "done"
			if refused := new(refusal); errors.As(err, &refused) {
				how = "refused (" + strings.SplitN(refused.body, ":", 2)[0] + ")"
			} else if err != nil {
				return fmt.Errorf("%s: %w", step.what, err)
			}
			fmt.Fprintf(verdicts, "%d %s: %s\n", sent, step.what, how)
		}
	}
	return nil
}

// wikiPairs is how often requests are sent at once.
const wikiPairs = 40

// atOnce has two editors do things at once, and counts in the wiki's tables.
func (w *wiki) atOnce(ctx context.Context, books io.Writer) error {
	refused := 0
	for n := range wikiPairs {
		act := func(action string, parameters values) func() error {
			return func() error { return w.admin.act(ctx, action, parameters, nil) }
		}
		page := fmt.Sprintf("At once %d", n)
		var errs []error
		for _, pair := range [][2]func() error{
			{act("edit", values{"title": page, "text": "one [[Category:D]]"}), act("edit", values{"title": page, "text": "two [[Category:D]]"})},
			{act("edit", values{"title": page, "appendtext": "\n\nadded by one"}), act("edit", values{"title": page, "appendtext": "\n\nadded by two"})},
			{act("block", values{"user": fmt.Sprintf("198.51.100.%d", n)}), act("block", values{"user": fmt.Sprintf("198.51.100.%d", n)})},
			{act("options", values{"change": fmt.Sprintf("nickname=a%d", n)}), act("options", values{"change": fmt.Sprintf("gender=%s", []string{"male", "female"}[n%2])})},
		} {
			errs = append(errs, atOnce(pair[0], pair[1])...)
		}
		for _, err := range errs {
			if errors.As(err, new(*refusal)) {
				refused++
			}
		}
		if err := unlessRefused(errs); err != nil {
			return err
		}
	}
	const count = `$db = parse_url(getenv('DATABASE_URL'));
$m = new mysqli($db['host'], $db['user'], $db['pass'] ?? '', ltrim($db['path'], '/'), $db['port']);
$one = fn($q) => (int) $m->query($q)->fetch_row()[0];
echo 'books=', json_encode([
	'pages where an added line is gone, though its request was not refused' => $one("SELECT COUNT(*) FROM page p WHERE page_title LIKE 'At_once%' AND (SELECT COUNT(*) FROM revision r WHERE r.rev_page = p.page_id) > 1 + (SELECT COUNT(DISTINCT c.content_sha1) - 1 FROM revision r JOIN slots s ON s.slot_revision_id = r.rev_id JOIN content c ON c.content_id = s.slot_content_id WHERE r.rev_page = p.page_id)"),
	'users blocked twice' => $one("SELECT COUNT(*) FROM (SELECT 1 FROM ipblocks GROUP BY ipb_address HAVING COUNT(*) > 1) AS d"),
	'categories whose count of pages is wrong' => $one("SELECT COUNT(*) FROM category WHERE cat_pages <> (SELECT COUNT(*) FROM categorylinks WHERE cl_to = cat_title)"),
	'wrong count of edits of a user' => $one("SELECT COUNT(*) FROM user u JOIN actor a ON a.actor_user = u.user_id WHERE user_name = 'Admin' AND user_editcount <> (SELECT COUNT(*) FROM revision WHERE rev_actor = a.actor_id)"),
]);`
	c := exec.CommandContext(ctx, "php", "-r", count)
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("count in its books: %w: %s", err, out)
	}
	fmt.Fprintf(books, "  (%d of %d requests were refused)\n", refused, 8*wikiPairs)
	return writeBooks(books, out, wikiPairs)
}
