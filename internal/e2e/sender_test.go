package e2e

import (
	"context"
	"net/url"
	"slices"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
)

// sendersOf returns what was recorded of the senders of statements of a shape.
func sendersOf(t *testing.T, recording, shape string) (all []history.Sender) {
	t.Helper()
	err := analysis.Each(t.Context(), []string{recording}, func(history.Info) error { return nil }, func(x *history.Txn) error {
		for i := range x.Stmts {
			if x.Stmts[i].Shape == shape {
				all = append(all, x.Stmts[i].Sender)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const saidComment = " /*controller='orders',action='pay',file='a.go',line='7',traceparent='00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'*/"

// saysSenders checks what three statements said: two that are sent as they are, one of them prepared and run twice.
func saysSenders(t *testing.T, got []history.Sender) {
	t.Helper()
	first := history.Sender{Place: "a.go:7", Action: "orders#pay", Request: "4bf92f3577b34da6a3ce929d0e0e4736"}
	again := first
	again.Request = "" // that of who prepared it
	if len(got) != 3 || got[0] != first || got[1] != first || got[2] != again {
		t.Errorf("recorded %+v", got)
	}
}

func TestSendersAreRecordedOnMariaDB(t *testing.T) {
	b := newBench(t, nil, "CREATE TABLE paid (id INT PRIMARY KEY, v INT)", "INSERT INTO paid VALUES (1, 0)")
	c := b.conn(b.through)
	b.exec(c, "UPDATE paid SET v = 1 WHERE id = 1"+saidComment)
	s, err := c.PrepareContext(t.Context(), "UPDATE paid SET v = ? WHERE id = ?"+saidComment)
	if err != nil {
		t.Fatal(err)
	}
	for v := range 2 {
		if _, err := s.ExecContext(t.Context(), v+2, 1); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	b.stop()
	saysSenders(t, sendersOf(t, b.recording, "UPDATE paid SET v = ? WHERE id = ?"))
}

func TestSendersAreRecordedOnPostgreSQL(t *testing.T) {
	b := newPostgresBench(t, "CREATE TABLE paid (id int PRIMARY KEY, v int)", "INSERT INTO paid VALUES (1, 0)")
	c := b.connect(b.through(), pgx.QueryExecModeExec)
	ctx := context.Background()
	if _, err := c.Exec(ctx, "UPDATE paid SET v = 1 WHERE id = 1"+saidComment); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Prepare(ctx, "pay", "UPDATE paid SET v = $1 WHERE id = $2"+saidComment); err != nil {
		t.Fatal(err)
	}
	for v := range 2 {
		if _, err := c.Exec(ctx, "pay", v+2, 1); err != nil {
			t.Fatal(err)
		}
	}
	c.Close(ctx)
	b.stop()
	saysSenders(t, sendersOf(t, b.recording, "UPDATE paid SET v = ? WHERE id = ?"))
}

const saidRequest = "request_id:r7"

// TestConnectionsSayTheirSenders has clients say at the login, or by a setting, whose statements follow. Comments count
// before that.
func TestConnectionsSayTheirSenders(t *testing.T) {
	const commented = " /*controller='orders',action='pay',request_id='r9'*/"
	want := []history.Sender{{Request: "r7"}, {Action: "orders#pay", Request: "r9"}}
	t.Run("attributes", func(t *testing.T) {
		b := newBench(t, nil, "CREATE TABLE paid (id INT PRIMARY KEY, v INT)", "INSERT INTO paid VALUES (1, 0)")
		c := b.conn(b.open("connectionAttributes=" + url.QueryEscape(saidRequest+",colour:red")))
		b.exec(c, "UPDATE paid SET v = 1 WHERE id = 1")
		b.exec(c, "UPDATE paid SET v = 1 WHERE id = 1"+commented)
		b.stop()
		if got := sendersOf(t, b.recording, "UPDATE paid SET v = ? WHERE id = ?"); !slices.Equal(got, want) {
			t.Errorf("recorded %+v, want %+v", got, want)
		}
	})
	t.Run("attributes behind CHANGE USER", func(t *testing.T) {
		b := newBench(t, nil, "CREATE TABLE paid (id INT PRIMARY KEY, v INT)", "INSERT INTO paid VALUES (1, 0)")
		c := dialRaw(t, b.srv.Addr().String(), b.database, gomysql.CLIENT_CONNECT_ATTRS)
		command := func(command byte, payload string) {
			t.Helper()
			if !c.try(append([]byte{command}, payload...)) {
				t.Fatalf("command %#x failed", command)
			}
		}
		update := func() { command(gomysql.COM_QUERY, "UPDATE paid SET v = 1 WHERE id = 1") }
		user := "root\x00\x00" + b.database + "\x00\x21\x00" + authPlugin() + "\x00"
		update()
		command(gomysql.COM_CHANGE_USER, user+"\x0e\x0arequest_id\x02r7")
		update()
		command(gomysql.COM_CHANGE_USER, user+"\x00")
		update()
		c.conn.Close()
		b.stop()
		want := []history.Sender{{}, {Request: "r7"}, {}}
		if got := sendersOf(t, b.recording, "UPDATE paid SET v = ? WHERE id = ?"); !slices.Equal(got, want) {
			t.Errorf("recorded %+v, want %+v", got, want)
		}
	})
	t.Run("application_name", func(t *testing.T) {
		b := newPostgresBench(t, "CREATE TABLE paid (id int PRIMARY KEY, v int)", "INSERT INTO paid VALUES (1, 0)")
		c := b.connect(b.through(), pgx.QueryExecModeExec, "application_name", saidRequest)
		update := func(text string) {
			t.Helper()
			if _, err := c.Exec(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		update("UPDATE paid SET v = 1 WHERE id = 1")
		update("UPDATE paid SET v = 1 WHERE id = 1" + commented)
		update("SET application_name = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'")
		update("UPDATE paid SET v = 1 WHERE id = 1")
		update("SET application_name = 'psql'")
		update("UPDATE paid SET v = 1 WHERE id = 1")
		c.Close(t.Context())
		b.stop()
		want := append(slices.Clone(want), history.Sender{Request: "4bf92f3577b34da6a3ce929d0e0e4736"}, history.Sender{})
		if got := sendersOf(t, b.recording, "UPDATE paid SET v = ? WHERE id = ?"); !slices.Equal(got, want) {
			t.Errorf("recorded %+v, want %+v", got, want)
		}
	})
}
