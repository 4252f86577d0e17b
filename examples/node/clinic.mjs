// An application as many are, with three mistakes that no test of its own shows. `isotap run` in front of its tests shows
// the three, and nothing else:
//
//     isotap run --upstream postgres://app@127.0.0.1/clinic -- node --test examples/node/
//
// The other functions do the same jobs right. It runs on PostgreSQL (pg) and on MySQL and MariaDB (mysql2).

/** Connects to the database of DATABASE_URL. What it returns runs statements with ? for values, and gives rows or a count. */
export async function connect() {
  const url = process.env.DATABASE_URL;
  if (url.startsWith("postgres")) {
    const { default: pg } = await import("pg");
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return {
      run: async (sql, values = []) => {
        let n = 0;
        const r = await client.query(sql.replace(/\?/g, () => `$${++n}`), values);
        return { rows: r.rows, count: r.rowCount };
      },
      end: () => client.end(),
    };
  }
  const { createConnection } = await import("mysql2/promise");
  const connection = await createConnection(url);
  return {
    run: async (sql, values = []) => {
      const [r] = await connection.query(sql, values);
      return { rows: r, count: r.affectedRows };
    },
    end: () => connection.end(),
  };
}

/** Runs a request's statements in a transaction. */
async function transaction(db, work) {
  await db.run("BEGIN");
  try {
    await work();
    await db.run("COMMIT");
  } catch (error) {
    await db.run("ROLLBACK");
    throw error;
  }
}

/** The first mistake: two at once read the same balance, and one payment is lost. */
export const pay = (db, account, amount) =>
  transaction(db, async () => {
    const { rows } = await db.run("SELECT balance FROM account WHERE id = ?", [account]);
    await db.run("UPDATE account SET balance = ? WHERE id = ?", [rows[0].balance - amount, account]);
  });

/** The second mistake: two doctors at once see each other on call, and nobody is left. */
export const goOffCall = (db, doctor) =>
  transaction(db, async () => {
    const { rows } = await db.run("SELECT COUNT(*) AS n FROM doctor WHERE on_call = 1");
    if (rows[0].n < 2) throw new Error("nobody else is on call");
    await db.run("UPDATE doctor SET on_call = 0 WHERE id = ?", [doctor]);
  });

/** The third mistake: two at once find no such patient, and there are two. */
export const register = (db, address) =>
  transaction(db, async () => {
    const { rows } = await db.run("SELECT id FROM patient WHERE address = ?", [address]);
    if (rows.length > 0) throw new Error("somebody has registered with this address");
    await db.run("INSERT INTO patient (address) VALUES (?)", [address]);
  });

/** pay with the row locked before it is read. */
export const payLocked = (db, account, amount) =>
  transaction(db, async () => {
    const { rows } = await db.run("SELECT balance FROM account WHERE id = ? FOR UPDATE", [account]);
    await db.run("UPDATE account SET balance = ? WHERE id = ?", [rows[0].balance - amount, account]);
  });

/** pay with a column that counts the changes: the second of two finds that it has counted on. */
export const payVersioned = (db, account, amount) =>
  transaction(db, async () => {
    const { rows } = await db.run("SELECT balance, version FROM account WHERE id = ?", [account]);
    const { count } = await db.run("UPDATE account SET balance = ?, version = version + 1 WHERE id = ? AND version = ?", [
      rows[0].balance - amount, account, rows[0].version]);
    if (count === 0) throw new Error("somebody else has changed it meanwhile");
  });

/** register with a unique key, which refuses the second of two. */
export const subscribe = (db, address) =>
  transaction(db, async () => {
    const { rows } = await db.run("SELECT id FROM subscriber WHERE address = ?", [address]);
    if (rows.length > 0) throw new Error("somebody has registered with this address");
    await db.run("INSERT INTO subscriber (address) VALUES (?)", [address]);
  });
