-- What is written rests on what was read, and nothing holds the row between the two: updates get lost.
BEGIN;
SELECT tbalance FROM pgbench_tellers WHERE tid = 1 \gset
\set next :tbalance + 1
UPDATE pgbench_tellers SET tbalance = :next WHERE tid = 1;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, 1, 1, CURRENT_TIMESTAMP);
END;
