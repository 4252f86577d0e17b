-- A day at the bank's reports: joins, groups and queries in FROM over rows that change meanwhile.
\set aid random(1, 100000 * :scale - 20)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts AS a SET abalance = a.abalance + :delta FROM pgbench_branches AS b WHERE a.bid = b.bid AND a.aid = :aid RETURNING a.abalance, b.bbalance;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) SELECT t.tid, t.bid, :aid, :delta, CURRENT_TIMESTAMP FROM pgbench_tellers t WHERE t.tid = :tid;
END;
SELECT a.aid, a.abalance, b.bbalance FROM pgbench_accounts a JOIN pgbench_branches b USING (bid) WHERE a.aid BETWEEN :aid AND :aid + 5 ORDER BY a.abalance, a.aid LIMIT 3;
SELECT b.bid, count(*), sum(t.tbalance), max(t.tbalance) FROM pgbench_branches b LEFT JOIN pgbench_tellers t ON t.bid = b.bid GROUP BY b.bid ORDER BY b.bid;
SELECT count(*), avg(abalance) FROM pgbench_accounts WHERE aid BETWEEN :aid AND :aid + 20;
SELECT count(*) FILTER (WHERE abalance > 0), min(abalance) FROM pgbench_accounts WHERE aid < 0;
SELECT t.bid, s.n FROM pgbench_tellers t CROSS JOIN (SELECT count(*) AS n FROM pgbench_branches) s WHERE t.tid = :tid;
WITH rich AS (SELECT tid, bid, tbalance FROM pgbench_tellers WHERE tbalance > 0) SELECT r.tid, r.tbalance, b.bbalance FROM rich r JOIN pgbench_branches b ON b.bid = r.bid ORDER BY r.tbalance DESC, r.tid LIMIT 5;
SELECT tid, rank() OVER (PARTITION BY bid ORDER BY tbalance DESC, tid) FROM pgbench_tellers ORDER BY tid;
