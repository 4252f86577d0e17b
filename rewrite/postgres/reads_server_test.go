package postgres

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// readTexts are reads by their form; a line that begins with ! is one that goes as the client wrote it.
const readTexts = `
SELECT * FROM (SELECT id, name FROM item) d ORDER BY id
SELECT d.* FROM (SELECT * FROM item) AS d ORDER BY 1
SELECT d.id, o.qty FROM (SELECT id FROM item WHERE stock > 0) d JOIN orders o ON o.item_id = d.id ORDER BY 1, 2
SELECT x.n, x.id FROM (SELECT d.id, d.name AS n FROM (SELECT * FROM item) d) x ORDER BY id
SELECT * FROM orders o LEFT JOIN (SELECT id AS i, name FROM item) d ON d.i = o.item_id ORDER BY o.id
SELECT o.id, d.name FROM orders o LEFT JOIN (SELECT id AS i, name FROM item WHERE id < 2) d ON d.i = o.item_id ORDER BY o.id
SELECT * FROM (SELECT id, row_number() OVER (ORDER BY price) AS rn FROM item) t WHERE rn <= 2 ORDER BY rn
SELECT d.a, d.b FROM (SELECT id, name FROM item) AS d(a, b) ORDER BY a
SELECT d.a, d.name FROM (SELECT id, name FROM item) AS d(a) ORDER BY a
SELECT d.a FROM (SELECT id, name FROM item) AS d(a, b, c)
SELECT *, 1 AS one FROM (SELECT id FROM item) d ORDER BY 1
SELECT d FROM (SELECT id, name FROM item) d ORDER BY d
SELECT row_to_json(d) FROM (SELECT id, name FROM item) d ORDER BY 1 USING <
SELECT row_to_json(d)::text FROM (SELECT id, name FROM item) d ORDER BY 1
SELECT ROW(d.*) FROM (SELECT id, name FROM item) d ORDER BY d.id
SELECT i.id, o.* FROM item i, LATERAL (SELECT qty FROM orders o WHERE o.item_id = i.id ORDER BY qty DESC LIMIT 1) o ORDER BY i.id
SELECT i.id, o.qty FROM item i LEFT JOIN LATERAL (SELECT qty FROM orders o WHERE o.item_id = i.id ORDER BY qty DESC LIMIT 1) o ON true ORDER BY i.id
SELECT s2.* FROM (SELECT id AS c1 FROM item) s1, LATERAL (SELECT s1.*, o.qty FROM orders o WHERE o.item_id = s1.c1) s2 ORDER BY 1, 2
SELECT * FROM (SELECT id AS c1 FROM item) s1, LATERAL (SELECT s1.*, o.qty FROM orders o WHERE o.item_id = s1.c1) s2 ORDER BY 1, 3
SELECT s2.* FROM (SELECT id AS c1 FROM item) s1 LEFT JOIN LATERAL (SELECT s1.*, o.qty FROM orders o WHERE o.item_id = s1.c1) s2 ON true ORDER BY 1, 2
WITH w AS (SELECT id, name FROM item) SELECT x.* FROM w, LATERAL (SELECT w.* FROM orders LIMIT 1) x ORDER BY 1
SELECT x.* FROM (SELECT id FROM item) a, LATERAL (SELECT y.* FROM LATERAL (SELECT a.*, o.qty FROM orders o WHERE o.item_id = a.id) y) x ORDER BY 1, 2
SELECT x.* FROM (SELECT id FROM item) a, LATERAL (SELECT y.qty, y.* FROM (SELECT a.*, o.qty FROM orders o WHERE o.item_id = a.id) y) x ORDER BY 1, 2
SELECT x.* FROM item a, LATERAL (SELECT a.*, o.qty FROM orders o WHERE o.item_id = a.id) x ORDER BY 1, 5
SELECT x.* FROM item a, LATERAL (SELECT a.*, o.qty FROM (SELECT * FROM orders) o WHERE o.item_id = a.id) x ORDER BY 1, 5
SELECT x.* FROM (SELECT id FROM item) a, LATERAL (SELECT a.* UNION ALL SELECT o.qty FROM orders o WHERE o.item_id = a.id) x ORDER BY 1
SELECT x.* FROM item a, LATERAL (SELECT a.* UNION ALL SELECT o.qty, 'x', 1, 1 FROM orders o WHERE o.item_id = a.id) x ORDER BY 1, 4
SELECT a.id, (SELECT count(y) FROM (SELECT a.*) y) FROM (SELECT id FROM item) a ORDER BY 1
SELECT x.c, a.id FROM (SELECT id FROM item) a, LATERAL (SELECT count(*) AS c FROM (SELECT a.*, o.id FROM orders o) y) x ORDER BY 2
SELECT x FROM (SELECT id FROM item) a, LATERAL (SELECT a.*, o.qty FROM orders o WHERE o.item_id = a.id) x ORDER BY 1
SELECT x.p, x.q FROM (SELECT id FROM item) a, LATERAL (SELECT a.*, o.qty FROM orders o WHERE o.item_id = a.id) x (p, q) ORDER BY 1, 2
SELECT x.* FROM (SELECT id FROM item) a, LATERAL (SELECT a.* FROM (SELECT qty AS z FROM orders) a) x ORDER BY 1, 2
SELECT * FROM ((SELECT id FROM item)) AS d ORDER BY 1
SELECT a.id, b.id FROM ((SELECT id FROM item) AS a CROSS JOIN (SELECT id FROM orders) AS b) ORDER BY 1, 2
SELECT a.id FROM item a FULL JOIN orders b ON a.id = b.item_id ORDER BY a.id, b.id
SELECT a.name, b.note FROM item a RIGHT JOIN orders b ON a.id = b.item_id ORDER BY b.id
SELECT * FROM item NATURAL JOIN orders ORDER BY id
SELECT * FROM item JOIN orders USING (id) ORDER BY id
SELECT * FROM item JOIN (SELECT id, note FROM orders) o USING (id) ORDER BY id
SELECT * FROM (SELECT id, note FROM orders) o JOIN item USING (id) ORDER BY id
SELECT * FROM item NATURAL JOIN (SELECT id, note FROM orders) o ORDER BY id
SELECT o.note, i.name FROM item i NATURAL JOIN (SELECT id, note FROM orders) o ORDER BY id
SELECT * FROM (item i JOIN orders o ON o.item_id = i.id) AS j(a, b) ORDER BY 1, 5
SELECT * FROM item, (VALUES (1, 'one'), (2, 'two')) v(n, w) WHERE n = id ORDER BY id
VALUES (1, 'a'), (2, 'b') ORDER BY 1
TABLE item ORDER BY id
TABLE kv ORDER BY k COLLATE "C" LIMIT 1
(SELECT id FROM item) ORDER BY id LIMIT 2
((SELECT id FROM item ORDER BY id DESC)) LIMIT 2
SELECT n FROM item CROSS JOIN generate_series(1, 2) WITH ORDINALITY AS g(n, o) ORDER BY id, n
SELECT * FROM item, ROWS FROM (generate_series(1, 2), generate_series(5, 6)) AS r(a, b) ORDER BY id, a
SELECT i.id, e FROM item i, LATERAL unnest(ARRAY[i.id, i.stock]) e ORDER BY 1, 2
SELECT b.id, x.* FROM (VALUES (1)) AS b(id), LATERAL (SELECT count(*) FROM item WHERE item.id > b.id) x
WITH x AS (SELECT 1 AS one) SELECT * FROM x
WITH c AS (SELECT id, name FROM item) SELECT * FROM c ORDER BY id
WITH c AS (SELECT id, name FROM item), d AS (SELECT c.id FROM c WHERE id > 1) SELECT d.id, c.name FROM d JOIN c USING (id) ORDER BY 1
WITH c(a, b) AS (SELECT id, name FROM item) SELECT a, b FROM c ORDER BY a
WITH c(a) AS (SELECT id, name FROM item) SELECT * FROM c ORDER BY a
WITH c(a, b, x) AS (SELECT id, name FROM item) SELECT a, b FROM c ORDER BY a
WITH c AS MATERIALIZED (SELECT id FROM item) SELECT a.id, b.id FROM c a, c b ORDER BY 1, 2
WITH c AS NOT MATERIALIZED (SELECT id FROM item) SELECT a.id, b.id FROM c a, c b ORDER BY 1, 2
WITH c AS (SELECT id FROM item) SELECT * FROM c a, c b ORDER BY 1, 2
WITH c AS (SELECT id FROM item) SELECT * FROM c a NATURAL JOIN c b ORDER BY 1
WITH c AS (SELECT id, item_id FROM orders) SELECT name FROM item WHERE id IN (SELECT item_id FROM c) ORDER BY 1
WITH c AS (SELECT item_id FROM orders) SELECT c.item_id FROM c WHERE item_id IN (SELECT * FROM c) ORDER BY 1
WITH c AS (SELECT item_id FROM orders) SELECT item_id, (SELECT count(*) FROM c) FROM c ORDER BY 1
WITH c AS (SELECT id FROM item) SELECT c FROM c ORDER BY 1
WITH item AS (SELECT id FROM orders) SELECT * FROM item ORDER BY 1
WITH a AS (SELECT id FROM item), item AS (SELECT 9 AS id) SELECT a.id, item.id FROM a, item ORDER BY 1
WITH unused AS (SELECT 1 / stock FROM item) SELECT id FROM item ORDER BY id
WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n) FROM t
WITH RECURSIVE t AS (SELECT id, stock AS s FROM item WHERE id = 1 UNION ALL SELECT i.id, i.stock FROM item i JOIN t ON i.id = t.id + 1) SELECT id, s FROM t ORDER BY id
WITH RECURSIVE t AS (SELECT id, stock AS s FROM item WHERE id = 1 UNION ALL SELECT i.id, i.stock FROM item i JOIN t ON i.id = t.id + 1) SELECT * FROM t ORDER BY id
WITH RECURSIVE t AS (SELECT k, 1 AS n FROM kv UNION ALL SELECT kv.k, t.n + 1 FROM kv, t WHERE t.n < 2) SELECT count(*), max(n) FROM t
WITH RECURSIVE t AS (SELECT id FROM item UNION SELECT o.item_id FROM orders o JOIN t ON o.id = t.id) SELECT id FROM t ORDER BY id
WITH RECURSIVE t AS (SELECT id FROM item WHERE id = 1 UNION ALL SELECT t.* FROM t WHERE false) SELECT id FROM t
WITH RECURSIVE later AS (SELECT id FROM sooner), sooner AS (SELECT id FROM item) SELECT * FROM later ORDER BY id
WITH t AS (SELECT item_id, sum(qty) AS q FROM orders GROUP BY item_id) SELECT * FROM t ORDER BY 1
WITH t AS MATERIALIZED (SELECT item_id, sum(qty) AS q FROM orders GROUP BY item_id) SELECT * FROM t ORDER BY 1
WITH d AS (DELETE FROM loose WHERE a = 99 RETURNING *) SELECT * FROM d
SELECT * FROM (WITH c AS (SELECT id FROM item) SELECT id FROM c) d ORDER BY 1
SELECT count(*) FROM item
SELECT count(*), sum(stock), max(price) FROM item WHERE stock > 0
SELECT count(*) FROM item WHERE false
SELECT sum(qty) AS total FROM orders o JOIN item i ON i.id = o.item_id
SELECT count(i.id), count(*) FROM orders o LEFT JOIN item i ON i.id = o.item_id
SELECT k, count(*) FROM kv GROUP BY k ORDER BY k COLLATE "C"
SELECT item_id, count(*), sum(qty) FROM orders GROUP BY item_id ORDER BY item_id
SELECT item_id, count(*) FROM orders GROUP BY 1 HAVING count(*) > 1 ORDER BY 1
SELECT item_id, qty, count(*) FROM orders GROUP BY ROLLUP (item_id, qty) ORDER BY 1, 2
SELECT item_id, qty, count(*), grouping(item_id) FROM orders GROUP BY CUBE (item_id, qty) ORDER BY 1, 2, 4
SELECT item_id, qty, count(*) FROM orders GROUP BY GROUPING SETS ((item_id), (qty), ()) ORDER BY 1, 2
SELECT item_id, qty, count(*) FROM orders GROUP BY GROUPING SETS ((1), (2)) ORDER BY 1, 2
SELECT count(*) FILTER (WHERE qty > 1), count(DISTINCT item_id), string_agg(note, ',' ORDER BY id) FROM orders
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY qty), mode() WITHIN GROUP (ORDER BY item_id), rank(2) WITHIN GROUP (ORDER BY qty) FROM orders
SELECT item_id, sum(count(*)) OVER () FROM orders GROUP BY item_id ORDER BY 1
SELECT i.id, i.name, count(o.id) FROM item i LEFT JOIN orders o ON o.item_id = i.id GROUP BY i.id ORDER BY i.id
SELECT i.name AS n, count(*) FROM item i JOIN orders o ON o.item_id = i.id GROUP BY n ORDER BY 2 DESC, 1 LIMIT 1
SELECT name FROM item GROUP BY name ORDER BY 1
SELECT max(id) FROM item
SELECT min(price), max(price) FROM item
SELECT max(id) FROM item WHERE stock > 0
SELECT max(stock) FROM item
SELECT bool_and(stock >= 0) FROM item
SELECT json_agg(name ORDER BY id), array_agg(id ORDER BY id) FROM item
SELECT count(*) FROM (SELECT id FROM item WHERE stock > 0) d
SELECT avg(c) FROM (SELECT count(*) AS c FROM orders GROUP BY item_id) x
SELECT * FROM (SELECT item_id, count(*) AS c FROM orders GROUP BY item_id) x WHERE c > 1
SELECT x.c, i.name FROM (SELECT item_id, count(*) AS c FROM orders GROUP BY item_id) x JOIN item i ON i.id = x.item_id ORDER BY i.id
SELECT i.name, x.c FROM item i JOIN (SELECT item_id, count(*) AS c FROM orders GROUP BY item_id) x ON x.item_id = i.id ORDER BY 1
SELECT * FROM item i CROSS JOIN (SELECT count(*) AS n FROM orders) s ORDER BY i.id
SELECT i.id, s.n FROM item i CROSS JOIN (SELECT count(*) AS n FROM orders) s ORDER BY i.id DESC LIMIT 2
SELECT i.stock, sum(x.c) FROM item i LEFT JOIN (SELECT item_id, count(*) AS c FROM orders GROUP BY item_id) x ON x.item_id = i.id GROUP BY 1 ORDER BY 1
SELECT max(c) FROM (SELECT a, max(c) AS c FROM (SELECT id, a, count(*) AS c FROM part GROUP BY id, a) x GROUP BY a) y
SELECT rank() OVER (ORDER BY c), c FROM (SELECT item_id, count(*) AS c FROM orders GROUP BY item_id) x ORDER BY 1, 2
SELECT i.id, (SELECT n + i.id) FROM item i, (SELECT count(*) AS n FROM orders) s ORDER BY 1
SELECT string_agg(n::text, ',' ORDER BY n) FROM (SELECT item_id, count(*) AS n FROM orders GROUP BY 1) x HAVING count(*) > 1
SELECT a FROM loose GROUP BY a UNION SELECT DISTINCT id FROM item ORDER BY 1
SELECT s.nope FROM item, (SELECT count(*) AS n FROM orders) s
SELECT x.n FROM (SELECT count(*) AS n FROM item) x JOIN LATERAL (SELECT max(id) AS m FROM orders WHERE id > x.n) y ON true
SELECT name, nope FROM item GROUP BY name
SELECT name, id FROM item GROUP BY name
SELECT count(*), generate_series(1, 2) FROM item
SELECT sum(a) FROM part
SELECT * FROM items ORDER BY id
SELECT v, row_to_json(v), v.*::text FROM items v ORDER BY id
SELECT x.a FROM items AS x (a) WHERE x.a > 1
SELECT x.a FROM items AS x (a, b, c)
SELECT name, nope FROM items
SELECT ctid FROM items
SELECT name FROM items GROUP BY id
SELECT v.id, 1 / (v.id - 1) FROM items v ORDER BY 1
SELECT * FROM sold NATURAL JOIN orders ORDER BY id
SELECT i.id, s.* FROM item i LEFT JOIN sold s ON s.item = i.id ORDER BY 1, 2
SELECT i.id FROM item i LEFT JOIN sold s ON s.item = i.id AND 1 / s.qty > 0 ORDER BY 1
SELECT count(*), max(id), min(name) FROM items
SELECT max(id) FROM items
SELECT item, sum(qty) FROM sold GROUP BY 1 HAVING sum(qty) > 1 ORDER BY 1
SELECT DISTINCT name FROM sold ORDER BY 1
SELECT DISTINCT ON (item) item, qty FROM sold ORDER BY 1, 2
SELECT id FROM items UNION SELECT a FROM loose ORDER BY 1
SELECT id FROM items INTERSECT SELECT a FROM loose ORDER BY 1
SELECT id, rank() OVER (ORDER BY name DESC) FROM items ORDER BY 1
SELECT * FROM items ORDER BY id FOR UPDATE
SELECT i.id FROM item i, items v WHERE v.id = i.id ORDER BY 1 FOR SHARE OF i
SELECT * FROM one, only_parent
SELECT * FROM lines ORDER BY o, n OFFSET 1
SELECT id FROM item WHERE EXISTS (SELECT FROM items v WHERE v.id = item.id) ORDER BY 1
SELECT (SELECT v FROM items v WHERE v.id = i.id) FROM items i ORDER BY i.id
TABLE items ORDER BY id
SELECT count(*) FROM parent
SELECT count(*) FROM kv WHERE k LIKE 'c%'
SELECT count(*) FROM "Odd"
SELECT count(*) FROM strange
SELECT count(*) FROM line
SELECT count(*) FROM item FOR UPDATE
SELECT DISTINCT item_id FROM orders ORDER BY item_id
SELECT DISTINCT item_id, qty AS q FROM orders ORDER BY q DESC, 1
SELECT DISTINCT o.item_id, i.name FROM orders o LEFT JOIN item i ON i.id = o.item_id ORDER BY i.name, o.item_id
SELECT DISTINCT lower(name), 1, 'x' FROM item ORDER BY lower(name)
SELECT DISTINCT 'x' AS lit FROM item
SELECT DISTINCT * FROM loose ORDER BY a
SELECT DISTINCT note FROM orders WHERE qty > 1 ORDER BY note LIMIT 1
SELECT DISTINCT body FROM event
SELECT DISTINCT item_id FROM orders ORDER BY qty
SELECT DISTINCT count(*) OVER () FROM orders
SELECT DISTINCT count(*) FROM orders GROUP BY item_id ORDER BY 1
SELECT DISTINCT (SELECT max(qty) FROM orders o WHERE o.item_id = i.id) FROM item i ORDER BY 1
SELECT DISTINCT generate_series(1, 2) FROM item ORDER BY 1
SELECT DISTINCT item_id FROM orders FOR UPDATE
SELECT DISTINCT ON (item_id) item_id, qty, note FROM orders ORDER BY item_id, qty DESC
SELECT DISTINCT ON (1) item_id, qty FROM orders ORDER BY 1, 2
SELECT DISTINCT ON (item_id) * FROM orders ORDER BY item_id, id
SELECT ALL item_id FROM orders ORDER BY 1
SELECT count(*) FROM (SELECT DISTINCT item_id FROM orders) d
SELECT * FROM (SELECT DISTINCT item_id FROM orders) d ORDER BY 1
SELECT id, name FROM item UNION ALL SELECT id, note FROM orders ORDER BY 1, 2
SELECT id FROM item UNION ALL SELECT id FROM orders UNION ALL SELECT a FROM loose ORDER BY 1
(SELECT id FROM item ORDER BY id LIMIT 1) UNION ALL (SELECT id FROM orders ORDER BY id DESC LIMIT 1) ORDER BY 1
SELECT * FROM item UNION ALL SELECT * FROM item ORDER BY 1, 2
SELECT 1 UNION ALL SELECT id FROM item ORDER BY 1
VALUES (5) UNION ALL SELECT id FROM item ORDER BY 1
SELECT count(*) FROM item UNION ALL SELECT count(*) FROM orders
SELECT k FROM kv UNION ALL SELECT sku FROM line ORDER BY 1
SELECT id FROM item UNION ALL SELECT id, qty FROM orders
SELECT k FROM kv UNION SELECT note FROM orders ORDER BY 1
SELECT id FROM item UNION SELECT item_id FROM orders ORDER BY 1
SELECT id FROM item UNION SELECT id FROM orders ORDER BY id DESC NULLS FIRST
SELECT id, name FROM item UNION SELECT id, note FROM orders ORDER BY name NULLS LAST, id LIMIT 3 OFFSET 1
SELECT 'item' AS kind, id FROM item UNION SELECT 'order', id FROM orders ORDER BY 1, 2
SELECT 1, NULL, 'x', id FROM item UNION SELECT 2, note, 'y', id FROM orders ORDER BY 1, 4
SELECT 'x' FROM item UNION SELECT 'x' FROM orders
SELECT NULL FROM item UNION SELECT NULL FROM loose
SELECT id, name FROM item UNION ALL (SELECT id, a FROM part UNION ALL TABLE loose) ORDER BY 1
TABLE loose UNION ALL TABLE kv
TABLE loose UNION ALL TABLE loose ORDER BY 1, 2
SELECT id FROM item UNION SELECT 'x' FROM orders
SELECT name FROM item UNION SELECT 1 FROM orders
SELECT id FROM item UNION SELECT price FROM item ORDER BY 1
SELECT a FROM loose UNION SELECT a FROM loose UNION ALL SELECT a FROM loose ORDER BY 1
SELECT a FROM loose UNION ALL SELECT a FROM loose UNION DISTINCT SELECT id FROM item ORDER BY 1
SELECT a FROM loose UNION (SELECT id FROM item UNION ALL SELECT a FROM part) ORDER BY a
SELECT a FROM loose UNION (SELECT id FROM item UNION SELECT a FROM part ORDER BY 1 LIMIT 1) ORDER BY a
(SELECT id FROM item ORDER BY price DESC NULLS LAST LIMIT 2) UNION (SELECT id FROM orders ORDER BY id DESC LIMIT 1) ORDER BY id
(SELECT a.id FROM item a UNION SELECT o.item_id FROM orders o) ORDER BY id -- behind
((SELECT id FROM item) UNION (SELECT 1)) ORDER BY 1
WITH w AS (SELECT id FROM item WHERE id > 1) SELECT id FROM orders WHERE id IN (SELECT id FROM w) UNION SELECT a FROM loose ORDER BY 1
WITH w AS (SELECT id FROM item) SELECT id FROM w UNION SELECT a FROM loose ORDER BY 1
SELECT * FROM parent UNION SELECT * FROM part ORDER BY 1, 2
TABLE loose UNION SELECT * FROM loose ORDER BY 1, 2
SELECT i.*, o.id FROM item i JOIN orders o ON o.item_id = i.id UNION SELECT * FROM item, part ORDER BY 1, 5
SELECT o.*, l.no FROM orders o LEFT JOIN line l ON l.order_id = o.id UNION SELECT id, a, a, 'x', 7 FROM part ORDER BY 1, 5
SELECT order_id, no, sku, at FROM line UNION SELECT a, a, b, '2020-01-01 00:00Z' FROM loose ORDER BY 1, 2
SELECT "Id" FROM "Odd" UNION SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12' FROM item ORDER BY 1
SELECT at FROM event UNION SELECT at FROM line ORDER BY at
SELECT id AS a, id AS a FROM item UNION SELECT 1, 2 FROM kv ORDER BY a
SELECT id FROM item UNION SELECT id FROM orders ORDER BY id + 1
SELECT id FROM item UNION SELECT id FROM orders ORDER BY 2
SELECT id FROM item UNION SELECT id, qty FROM orders
SELECT nope FROM item UNION SELECT id FROM orders
SELECT id FROM item UNION SELECT id FROM orders WHERE nope
SELECT id FROM item WHERE 1 / (id - 2) < 5 UNION SELECT id FROM orders ORDER BY 1 LIMIT 1
SELECT id FROM item WHERE 1 / (id - 2) < 5 UNION SELECT id FROM orders ORDER BY 1
SELECT id FROM item UNION SELECT id FROM orders ORDER BY 1 FOR UPDATE
SELECT id FROM item UNION SELECT id FROM orders ORDER BY 1 FETCH FIRST 2 ROWS ONLY
SELECT id FROM item WHERE false UNION SELECT max(id) FROM orders
SELECT id FROM item INTERSECT SELECT item_id FROM orders ORDER BY 1
SELECT id FROM item EXCEPT ALL SELECT item_id FROM orders ORDER BY 1
SELECT id FROM item UNION ALL (SELECT id FROM orders EXCEPT SELECT 1) ORDER BY 1
SELECT * FROM (SELECT id FROM item UNION ALL SELECT id FROM orders) u ORDER BY 1
SELECT u.id, i.name FROM (SELECT item_id AS id FROM orders UNION ALL SELECT a FROM loose) u JOIN item i USING (id) ORDER BY 1, 2
SELECT count(*) FROM (SELECT id FROM item UNION ALL SELECT id FROM orders) u
SELECT id FROM item UNION ALL SELECT id FROM orders ORDER BY 2
SELECT id, rank() OVER w FROM item WINDOW w AS (ORDER BY price NULLS LAST) ORDER BY 2, 1
SELECT id FROM item ORDER BY price DESC NULLS LAST OFFSET 1 ROWS FETCH NEXT 1 ROW ONLY
SELECT id FROM item ORDER BY stock > 0 FETCH FIRST 1 ROW WITH TIES
SELECT * FROM item ORDER BY 4, 1
SELECT * FROM item ORDER BY 5
SELECT id FROM item ORDER BY 2
SELECT id FROM item GROUP BY 2
SELECT i.id FROM item i JOIN orders o ON o.item_id = i.id ORDER BY o.id FOR SHARE OF o
SELECT d.id FROM (SELECT id FROM item) d ORDER BY 1 FOR UPDATE
SELECT id FROM item WHERE id = 1 FOR UPDATE NOWAIT
SELECT EXISTS (SELECT 1 FROM item WHERE stock = 0)
SELECT id, EXISTS (SELECT * FROM orders o WHERE o.item_id = i.id) FROM item i ORDER BY 1
SELECT id FROM item i WHERE NOT EXISTS (SELECT FROM orders WHERE item_id = i.id) ORDER BY 1
SELECT id FROM item WHERE (id, stock) IN (SELECT item_id, qty FROM orders) ORDER BY 1
SELECT ARRAY(SELECT id FROM orders WHERE item_id = i.id ORDER BY 1) FROM item i ORDER BY i.id
SELECT (i).name, i.* FROM item i ORDER BY i.id
SELECT i::text, to_json(i) FROM item i ORDER BY i.id
SELECT count(*) FROM pg_class WHERE relname = 'item'
SELECT relname FROM pg_class c JOIN item ON item.name = c.relname
SELECT * FROM jsonb_to_recordset('[{"a":1}]') AS x(a int), item WHERE id = a
SELECT x.v FROM item, xmltable('/r' PASSING '<r>1</r>' COLUMNS v int PATH '.') x ORDER BY id
SELECT CASE WHEN stock > 0 THEN 'in' ELSE 'out' END FROM item ORDER BY id
SELECT id FROM item WHERE price BETWEEN 1 AND 5 AND name IS NOT DISTINCT FROM 'pen'
SELECT substring(name FROM 1 FOR 2), extract(year FROM now()) > 2000, trim(both FROM name), overlay(name PLACING 'x' FROM 1 FOR 1) FROM item ORDER BY id
SELECT price_of(id) FROM item ORDER BY id
SELECT DISTINCT price_of(item_id) FROM orders ORDER BY 1
SELECT price_of(item_id), count(*) FROM orders GROUP BY 1 ORDER BY 1
SELECT public.price_of(1) FROM item WHERE price_of(id) > 2
SELECT total(qty) FROM orders
SELECT total(qty), item_id FROM orders GROUP BY item_id ORDER BY 2
SELECT public.total(stock) FILTER (WHERE id > 1), price_of(1) FROM item
SELECT total(qty) OVER (ORDER BY id) FROM orders ORDER BY id
SELECT (SELECT total(i.stock)) FROM item i
SELECT (SELECT total(o.qty) FROM orders o WHERE o.item_id = i.id) FROM item i ORDER BY i.id
SELECT largest(id) FROM item
SELECT largest(stock), total(stock) FROM item
SELECT concat(k) FROM (SELECT k FROM kv ORDER BY k) kv
SELECT concat(k, v) FROM kv ORDER BY k
SELECT concat(name) FROM item WHERE id < 3 AND id > 1
SELECT id, concat(name, id) FROM item ORDER BY id
SELECT price_of(id), nope(id) FROM item
SELECT 1 AS one FROM item WHERE 1 / stock > 5 HAVING 1 < 2
SELECT 1 AS one FROM item WHERE 1 / stock > 5 GROUP BY () HAVING 1 < 2
SELECT max(id) FROM item WHERE 1 / (id - 3) < 5
SELECT o.id FROM orders o LEFT JOIN item i ON i.id = o.item_id AND 1 / (i.stock - 3) > 5 ORDER BY 1
SELECT o.id FROM orders o LEFT JOIN (SELECT * FROM item WHERE 1 / (stock - 3) < 5) i ON i.id = o.item_id ORDER BY 1
SELECT name isotap_1 FROM item ORDER BY isotap_1
SELECT 1 AS "from", 2 AS "order" FROM item
SELECT id AS order, name AS from FROM item WHERE id = 1
`

func TestReadsReturnTheSame(t *testing.T) {
	tw := newTwins(t)
	for _, text := range strings.Split(strings.TrimSpace(readTexts), "\n") {
		plans, _ := tw.both(text)
		for _, p := range plans {
			if p.Observation != history.Exact {
				t.Logf("%v %s: %s", p.Observation, p.Reason, text)
			}
		}
	}
}
