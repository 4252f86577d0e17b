package rewrite

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

func TestSendersAreReadFromComments(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	long := strings.Repeat("x", 300)
	for comment, want := range map[string]history.Sender{
		"/*file='app/x.py',line='12'*/":                                           {Place: "app/x.py:12"},
		" /* line='12' , file = 'app/x.py' */ ":                                   {Place: "app/x.py:12"},
		"/*code.filepath='a%20b%2Fc.go',code.lineno='7',traceparent='00-5b-01'*/": {Place: "a b/c.go:7"},
		"/*code_file_path='x.rs'*/":                                               {Place: "x.rs"},
		`/*file='it\'s.py',line='1'*/`:                                            {Place: "it's.py:1"},
		"/*file='100%.py',line='1'*/":                                             {Place: "100%.py:1"},
		"/*line='12'*/":                                                           {},
		"/*profile='a',deadline='3'*/":                                            {},
		"-- file='app/x.py'":                                                      {},
		"-- /*file='app/x.py'*/":                                                  {},
		"# /*job='a'*/\n /*job='b'*/":                                             {Action: "b"},
		"/* file: app/x.py */":                                                    {},
		"/* see: x, file: y */":                                                   {},
		"/*file='" + long + "'*/":                                                 {},

		"/*application='Shop',source_location='app/models/a.rb:3%3Ain%20%60save%27'*/": {Place: "app/models/a.rb:3"},
		// What Rails 7.2.2 wrote, in both of its forms.
		"/*controller:accounts,action:show,source_location:app.rb:24:in `block in show',request_id:97820298-c454-401a-ad7c-92b163ad1afb*/": {
			Place: "app.rb:24", Action: "accounts#show", Request: "97820298-c454-401a-ad7c-92b163ad1afb"},
		"/*action='show',controller='accounts',request_id='71a0dc74-b21e-430d-8997-c67c2200cca5',source_location='app.rb%3A26%3Ain%20%60block%20in%20show%27'*/": {
			Place: "app.rb:26", Action: "accounts#show", Request: "71a0dc74-b21e-430d-8997-c67c2200cca5"},
		"/*application:Shop,controller:orders,action:create,source_location:app/models/a.rb:3:in `save'*/":                        {Place: "app/models/a.rb:3", Action: "orders#create"},
		"/*application:BCX,controller:projects,action:show,line:/app/a.rb:12:in `block in <top>'*/":                               {Place: "/app/a.rb:12", Action: "projects#show"},
		"/*namespaced_controller='Api%3A%3AOrdersController',controller='orders',action='pay',job=''*/":                           {Action: "Api::OrdersController#pay"},
		"/*application='Shop',job='NotifyJob'*/":                                                                                  {Action: "NotifyJob"},
		"/*controller='polls%3Avote',framework='django%3A4.2',route='%5Epolls/%24'*/":                                             {Action: "polls:vote"},
		"/*db_driver='pg',route='%2Fpay%2F%3Aid',traceparent='00-" + trace + "-00f067aa0ba902b7-01',tracestate='congo%3Dt61'*/":   {Action: "/pay/:id", Request: trace},
		"/*controller='index',db_driver='psycopg2%%3A2.9',route='%%2Fpolls',traceparent='00-" + trace + "-00f067aa0ba902b7-01'*/": {Action: "index", Request: trace},
		"/*action='findMany',model='User'*/":                                                                                      {},
		"/*action='refund',note='" + strings.Repeat(long, 20) + "'*/":                                                             {},
		"/*action='refund'*/":                     {Action: "refund"},
		"/*action='" + long + "'*/":               {},
		"/*request_id='b3d',traceparent='none'*/": {Request: "b3d"},
		"/*traceparent='00-00000000000000000000000000000000-00f067aa0ba902b7-01'*/": {},
		"/* AND job = 'alice@x.org' */":                                             {},
		"/*action='a', AND job = 'b'*/":                                             {},
		"/*controller:orders AND x='b'*/":                                           {Action: "orders AND x='b'"},
		"/*X-Request-Id:b3d*/":                                                      {Request: "b3d"},
		"/*action='a'*/ /*file='x.py',action='b'*/":                                 {Place: "x.py", Action: "a"},
		"/*callsite='app/jobs/a.rb:7',job='Sweep',line='300'*/":                     {Place: "app/jobs/a.rb:7", Action: "Sweep"},
	} {
		text := "/*x*/ SELECT 1 " + comment
		tokens := [][2]int{{6, 12}, {13, 14}}
		if got := SenderOf(text, len(tokens), func(i int) (int, int) { return tokens[i][0], tokens[i][1] }); got != want {
			t.Errorf("%s: got %+v, want %+v", comment, got, want)
		}
	}
}

func TestTheSenderIsThatOfTheStatementAlone(t *testing.T) {
	const text = "SELECT '; /*file=''x''*/' /*file='a'*/; SELECT 2 /*file='b'*/ ; /*file='c'*/ SELECT 3; /*file='d'*/"
	for _, c := range []struct {
		tokens []string
		want   string
	}{
		{[]string{"SELECT", "'; /*file=''x''*/'"}, "a"},
		{[]string{"SELECT 2"}, "b"},
		{[]string{"SELECT 2", ";"}, "b"},
		{[]string{"SELECT 3"}, "c"},
	} {
		var spans [][2]int
		from := 0
		for _, token := range c.tokens {
			start := from + strings.Index(text[from:], token)
			from = start + len(token)
			spans = append(spans, [2]int{start, from})
		}
		if got := SenderOf(text, len(spans), func(i int) (int, int) { return spans[i][0], spans[i][1] }).Place; got != c.want {
			t.Errorf("%q: got %q, want %q", c.tokens, got, c.want)
		}
	}
	for tokens := 1; tokens <= 2; tokens++ { // the semicolon is one, or none
		if got := SenderOf("SELECT 1; /*file='d'*/", tokens, func(i int) (int, int) { return 8 * i, 8 + i }).Place; got != "d" {
			t.Errorf("behind the semicolon, of %d tokens: got %q", tokens, got)
		}
	}
	if got := SenderOf("SELECT 1; SELECT 2; /*file='d'*/", 1, func(int) (int, int) { return 0, 8 }).Place; got != "" {
		t.Errorf("behind another statement: got %q", got)
	}
}

func TestSendersAreReadFromApplicationNames(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	for name, want := range map[string]history.Sender{
		"":                                     {},
		"psql":                                 {},
		"PostgreSQL JDBC Driver":               {},
		"app - 127.0.0.1:43210":                {},
		"request_id:a-1":                       {Request: "a-1"},
		"job:Bill,request_id:7":                {Action: "Bill", Request: "7"},
		"route='/pay',file='a.php'":            {Action: "/pay", Place: "a.php"},
		"00-" + trace + "-00f067aa0ba902b7-01": {Request: trace},
		"00-" + trace:                          {},
	} {
		if got := SenderOfApplication(name); got != want {
			t.Errorf("%q: %+v, want %+v", name, got, want)
		}
	}
}
