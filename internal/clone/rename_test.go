package clone

import (
	"errors"
	"strings"
	"testing"

	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

func TestTextsNameTheCopy(t *testing.T) {
	r := renaming{from: "shop", to: "copy", things: map[string]bool{"shop": true, "item": true}}
	for _, tt := range []struct{ text, want string }{
		{"SELECT shop.item.id FROM shop.item", "SELECT `copy`.item.id FROM `copy`.item"},
		{"SELECT a.id FROM `shop`.`item` a, `shop` . `other`", "SELECT a.id FROM `copy`.`item` a, `copy` . `other`"},
		{"INSERT INTO shop.item(id) VALUES ('shop.item', x.shop.y)", "INSERT INTO `copy`.item(id) VALUES ('shop.item', x.shop.y)"},
		{"CALL shop.p(1), Shop.p(1), shopping.p(1), sh.op()", "CALL `copy`.p(1), Shop.p(1), shopping.p(1), sh.op()"},
		{"a /* shop.b */ -- shop.c\n/*!50001 FROM shop.d */ , shop.e", "a /* shop.b */ -- shop.c\n/*!50001 FROM `copy`.d */ , `copy`.e"},
		{"PREPARE p FROM CONCAT(DATABASE(), '.shops my_shop')", "PREPARE p FROM CONCAT(DATABASE(), '.shops my_shop')"},
		// A table bears the schema's name.
		{"SELECT shop.id, shop.f(1) FROM shop", "SELECT shop.id, `copy`.f(1) FROM shop"},
		{"SELECT shop.id FROM ((`shop`.`shop` JOIN shop.item) JOIN (shop.item i))",
			"SELECT shop.id FROM ((`copy`.`shop` JOIN `copy`.item) JOIN (`copy`.item i))"},
		{"SELECT x.shop AS shop FROM shop.item x WHERE shop.n > 1", "SELECT x.shop AS shop FROM `copy`.item x WHERE shop.n > 1"},
	} {
		if got, err := r.text(tt.text, mysqltoken.Mode{}); err != nil || got != tt.want {
			t.Errorf("%s becomes %s, %v; want %s", tt.text, got, err, tt.want)
		}
	}
	for _, text := range []string{
		"SELECT shop.id FROM shop, shop.Item", // it can mean either
		"/*!", "/*! shop.x", "SELECT 'shop.x", "FROM `shop",
		"BEGIN PREPARE p FROM 'DELETE FROM shop.item'; END", "BEGIN EXECUTE IMMEDIATE CONCAT('DELETE FROM ', '`Shop`.', t); END",
	} {
		if got, err := r.text(text, mysqltoken.Mode{}); err == nil {
			t.Errorf("%s becomes %s", text, got)
		}
	}
	r.folds = true
	if got, err := r.text("CALL Shop.p()", mysqltoken.Mode{}); err != nil || got != "CALL `copy`.p()" {
		t.Errorf("where names fold: %s, %v", got, err)
	}
	ansi := modeOf("REAL_AS_FLOAT,ANSI_QUOTES")
	if got, err := r.text(`FROM "shop"."a""b"`, ansi); err != nil || got != "FROM `copy`.\"a\"\"b\"" {
		t.Errorf("with ANSI_QUOTES: %s, %v", got, err)
	}
}

func TestADefinerIsTakenOut(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"CREATE DEFINER=`a`@`%` TRIGGER t", "CREATE  TRIGGER t"},
		{"CREATE ALGORITHM=UNDEFINED DEFINER=`a``b`@`h` SQL SECURITY DEFINER VIEW v", "CREATE ALGORITHM=UNDEFINED  SQL SECURITY DEFINER VIEW v"},
		{"CREATE DEFINER=`role` FUNCTION f", "CREATE  FUNCTION f"},
		{"CREATE DEFINER = 'a'@'h' PROCEDURE p", "CREATE  PROCEDURE p"},
		{"CREATE TABLE t (id INT)", "CREATE TABLE t (id INT)"}, {"", ""},
	} {
		if got := withoutDefiner(tt.text, mysqltoken.Mode{}); got != tt.want {
			t.Errorf("%s becomes %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestTheCounterIsTheTables(t *testing.T) {
	for text, want := range map[string]string{
		"CREATE TABLE t (id INT AUTO_INCREMENT, x INT COMMENT 'AUTO_INCREMENT=7') ENGINE=InnoDB AUTO_INCREMENT=12 COMMENT='AUTO_INCREMENT=5'": "12",
		"CREATE TABLE t (id INT AUTO_INCREMENT) ENGINE=InnoDB":                                                                                "",
	} {
		if got := counter(text); got != want {
			t.Errorf("the counter of %s is %q, want %q", text, got, want)
		}
	}
}

// What is there already is somebody's, whatever its name.
func TestAnotherNameIsTakenForACopy(t *testing.T) {
	taken := errors.New("taken")
	var tried []string
	name, err := newDatabase(func(name string) error {
		if tried = append(tried, name); len(tried) < 3 {
			return taken
		}
		return nil
	}, func(err error) bool { return err == taken })
	if err != nil || len(tried) != 3 || name != tried[2] || tried[0] == tried[1] || !strings.HasPrefix(name, Prefix) {
		t.Errorf("tried %q, got %s, %v", tried, name, err)
	}
}
