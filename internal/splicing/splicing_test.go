package splicing

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isotap/isotap/internal/testdb"
)

var (
	texts = flag.Int("texts", 2000, "how many texts each family gets")
	seed  = flag.Uint64("seed", 1, "of the texts; 0: another one each time")
)

func TestMain(m *testing.M) { testdb.Main(m) }

// perSession is how many texts a session gets.
const perSession = 20

// sessionsOfFound is how many sessions get the texts that once differed, each under other settings.
const sessionsOfFound = 20

// maxShown is how many differences are shown.
const maxShown = 20

// A conn is a client's connection that shows replies byte for byte.
type conn interface {
	// ask sends a text and returns all of its reply; an error says that the connection is over.
	ask(text string) (reply []byte, err error)
	close()
}

// A family is a server of a protocol family, with two databases that began as twins: one that clients use directly,
// and one behind isotap.
type family struct {
	dial  [2]func() (conn, error) // directly, and through isotap
	names [2]string               // of the databases, which are as long as each other
	relay *relay                  // between isotap and the server
	// reset fills the tables of a database, dump tells what is in them.
	reset func(database int) error
	dump  func(database int) (string, error)
	// setUp returns the statements that begin a session; with the settings in words.
	setUp func(*rand.Rand) (settings string, texts []string)
	// keeps reports whether what was sent on a connection holds a text that was not refused.
	keeps func(sent, text []byte) bool
	// normal takes out of a reply what may differ, and messages cuts it, without their numbers.
	normal   func(reply []byte) []byte
	messages func(reply []byte) []string
	// row reports whether a message may be a row.
	row func(message string) bool
	grammar
}

// A grammar is what texts are made of.
type grammar struct {
	found                []string // texts that once differed: all sessions of a few begin with them
	fragments, templates []string // an X in a template stands for a fragment
	pieces, chains       []string // the same for texts of several statements
}

// hostile are bytes that mean something to some lexer in some character set.
const hostile = "'\"`\\;-#/*!$@?%&|()[]{}:,.\x00\x01\x02\x03\x08\t\n\v\f\r\x1a\x1b\x1f \x7f\x80\x81\x95\x9f\xa0\xa1\xbf\xc2\xe0\xef\xfc\xfd\xfe\xff019aAeEnNxXbBqU_"

// text returns a text.
func (g *grammar) text(r *rand.Rand) string {
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	fill := func(template string, with []string) string {
		var b strings.Builder
		for i, part := range strings.Split(template, "X") {
			if i > 0 {
				b.WriteString(pick(with))
			}
			b.WriteString(part)
		}
		return b.String()
	}
	var s string
	switch n := r.IntN(10); {
	case n < 4:
		s = fill(pick(g.templates), g.fragments)
	case n < 7:
		s = fill(pick(g.chains), append(g.pieces, g.fragments...))
	case n < 8:
		s = fill(pick(g.templates), g.fragments) + pick([]string{";", "; ", " ;", "--;",
			"-- ;\n;"}) + fill(pick(g.chains), g.pieces)
	default:
		for range 1 + r.IntN(6) {
			s += pick([]string{fill(pick(g.templates), g.fragments), pick(g.fragments), pick(g.pieces),
				";"}) + pick([]string{"", " ", ";", "\n", ","})
		}
	}
	if r.IntN(4) == 0 {
		s = mutate(r, s)
	}
	return s
}

// mutate changes a few bytes of a text.
func mutate(r *rand.Rand, s string) string {
	b := []byte(s)
	for range 1 + r.IntN(3) {
		at, c := r.IntN(len(b)+1), hostile[r.IntN(len(hostile))]
		switch r.IntN(3) {
		case 0:
			b = append(b[:at:at], append([]byte{c}, b[at:]...)...)
		case 1:
			if at < len(b) {
				b[at] = c
			}
		default:
			if at < len(b) {
				b = append(b[:at:at], b[at+1:]...)
			}
		}
	}
	return string(b)
}

// An outcome is what one side of a session showed.
type outcome struct {
	replies [][]byte
	sent    [][][]byte // what reached the server with each text; nil for the direct side
	state   string
}

// run runs a session's texts on one side.
func (f *family) run(side int, texts []string) (outcome, error) {
	var o outcome
	if err := f.reset(side); err != nil {
		return o, fmt.Errorf("fill the tables: %w", err)
	}
	c, err := f.dial[side]()
	if err != nil {
		return o, fmt.Errorf("connect: %w", err)
	}
	for _, text := range texts {
		if side == 1 {
			f.relay.take()
		}
		reply, err := c.ask(text)
		if err != nil {
			reply = append(reply, "[the connection ended]"...)
		}
		o.replies = append(o.replies, f.normal(bytes.ReplaceAll(reply, []byte(f.names[1]), []byte(f.names[0]))))
		if side == 1 {
			o.sent = append(o.sent, f.relay.take())
		}
		if err != nil {
			break
		}
	}
	c.close()
	o.state, err = f.dump(side)
	return o, err
}

// differ runs texts on both sides and returns the first difference; empty where there is none. at is the text's number,
// or as many as there are when the tables differ.
func (f *family) differ(texts []string, refused func(reply []byte) bool) (at int, difference string, err error) {
	var sides [2]outcome
	var errs [2]error
	var both sync.WaitGroup
	for i := range sides {
		both.Go(func() { sides[i], errs[i] = f.run(i, texts) })
	}
	both.Wait()
	for i, err := range errs {
		if err != nil {
			return 0, "", fmt.Errorf("%s: %w", []string{"directly", "through isotap"}[i], err)
		}
	}
	direct, proxied := sides[0], sides[1]
	for i := range max(len(direct.replies), len(proxied.replies)) {
		switch {
		case i >= len(direct.replies) || i >= len(proxied.replies) ||
			!f.same(texts[i], direct.replies[i], proxied.replies[i]):
			return i, fmt.Sprintf("direct %q\n  isotap %q", nth(direct.replies, i), nth(proxied.replies, i)), nil
		case !refused(direct.replies[i]) &&
			!slices.ContainsFunc(proxied.sent[i], func(sent []byte) bool { return f.keeps(sent, []byte(texts[i])) }):
			return i, fmt.Sprintf("the server was sent %q", proxied.sent[i]), nil
		}
	}
	if direct.state != proxied.state {
		return len(texts), fmt.Sprintf("tables, direct %s\n  isotap         %s", direct.state, proxied.state), nil
	}
	return 0, "", nil
}

// ordered finds texts that ask for an order, comment what does not count of them.
var (
	ordered = regexp.MustCompile(`(?i)order by id`)
	comment = regexp.MustCompile(`(?s)/\*.*?\*/`)
)

// same reports whether two replies to a text are the same, as far as SQL says what they are: rows that no order was
// asked for may come in another.
func (f *family) same(text string, a, b []byte) bool {
	return bytes.Equal(a, b) || !ordered.MatchString(comment.ReplaceAllString(text, "")) &&
		slices.Equal(f.inOrder(a), f.inOrder(b))
}

// inOrder returns the messages of a reply, those that may be rows of one result in the order of their bytes.
func (f *family) inOrder(reply []byte) []string {
	messages := f.messages(reply)
	for from := 0; from < len(messages); {
		to := from
		for to < len(messages) && f.row(messages[to]) {
			to++
		}
		slices.Sort(messages[from:to])
		from = max(to, from+1)
	}
	return messages
}

// nth returns a reply, or what stands for none.
func nth(replies [][]byte, i int) []byte {
	if i < len(replies) {
		return replies[i]
	}
	return []byte("[none]")
}

// hunt runs the texts of a family.
func (f *family) hunt(t *testing.T, refused func(reply []byte) bool) {
	t.Helper()
	start := *seed
	if start == 0 {
		start = uint64(time.Now().UnixNano())
	}
	t.Logf("%d texts, -seed %d", *texts, start)
	shown := make(map[string]int)
	sessions, failed := 0, 0
	for n := 0; n < *texts; n += perSession {
		r := rand.New(rand.NewPCG(start, uint64(n)))
		settings, session := f.setUp(r)
		before := len(session)
		if n < sessionsOfFound*perSession {
			session = append(session, f.found...)
		}
		for range perSession {
			session = append(session, f.text(r))
		}
		at, difference, err := f.differ(session, refused)
		if err != nil {
			t.Fatalf("session %d (%s): %v", n/perSession, settings, err)
		}
		sessions++
		if difference == "" {
			continue
		}
		failed++
		what := fmt.Sprintf("text %q", session[min(at, len(session)-1)])
		if at == len(session) {
			what = fmt.Sprintf("texts %q", session[before:])
		}
		if shown[what]++; shown[what] == 1 && len(shown) <= maxShown {
			t.Errorf("session %d, %s\n  %s\n  %s", n/perSession, settings, what, difference)
		}
	}
	if t.Logf("%d sessions, %d differ", sessions, failed); failed > 0 {
		t.Errorf("%d of %d sessions differ, in %d texts", failed, sessions, len(shown))
	}
}
