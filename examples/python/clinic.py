"""An application as many are, with three mistakes that no test of its own shows. `isotap run` in front of its tests shows
the three, and nothing else:

    isotap run --upstream postgres://app@127.0.0.1/clinic -- python3 -m unittest discover examples/python

The other functions do the same jobs right. It runs on PostgreSQL (psycopg2) and on MySQL and MariaDB (PyMySQL).
"""
import os
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit


class Taken(Exception):
    """Somebody has registered with this address."""


class Last(Exception):
    """Nobody else is on call."""


class Changed(Exception):
    """Somebody else has changed it meanwhile."""


def connect():
    """Connect to the database of DATABASE_URL."""
    url = urlsplit(os.environ["DATABASE_URL"])
    if url.scheme.startswith("postgres"):
        import psycopg2
        return psycopg2.connect(os.environ["DATABASE_URL"])
    import pymysql
    return pymysql.connect(host=url.hostname, port=url.port, user=unquote(url.username or ""),
                           password=unquote(url.password or ""), database=url.path.lstrip("/"))


@contextmanager
def transaction(db):
    """A request's transaction."""
    cursor = db.cursor()
    try:
        yield cursor
        db.commit()
    except BaseException:
        db.rollback()
        raise
    finally:
        cursor.close()


def pay(db, account, amount):
    """The first mistake: two at once read the same balance, and one payment is lost."""
    with transaction(db) as tx:
        tx.execute("SELECT balance FROM account WHERE id = %s", (account,))
        balance, = tx.fetchone()
        tx.execute("UPDATE account SET balance = %s WHERE id = %s", (balance - amount, account))


def go_off_call(db, doctor):
    """The second mistake: two doctors at once see each other on call, and nobody is left."""
    with transaction(db) as tx:
        tx.execute("SELECT COUNT(*) FROM doctor WHERE on_call = 1")
        if tx.fetchone()[0] < 2:
            raise Last
        tx.execute("UPDATE doctor SET on_call = 0 WHERE id = %s", (doctor,))


def register(db, address):
    """The third mistake: two at once find no such patient, and there are two."""
    with transaction(db) as tx:
        tx.execute("SELECT id FROM patient WHERE address = %s", (address,))
        if tx.fetchone():
            raise Taken
        tx.execute("INSERT INTO patient (address) VALUES (%s)", (address,))


def pay_locked(db, account, amount):
    """pay with the row locked before it is read."""
    with transaction(db) as tx:
        tx.execute("SELECT balance FROM account WHERE id = %s FOR UPDATE", (account,))
        balance, = tx.fetchone()
        tx.execute("UPDATE account SET balance = %s WHERE id = %s", (balance - amount, account))


def pay_versioned(db, account, amount):
    """pay with a column that counts the changes: the second of two finds that it has counted on."""
    with transaction(db) as tx:
        tx.execute("SELECT balance, version FROM account WHERE id = %s", (account,))
        balance, version = tx.fetchone()
        tx.execute("UPDATE account SET balance = %s, version = version + 1 WHERE id = %s AND version = %s",
                   (balance - amount, account, version))
        if tx.rowcount == 0:
            raise Changed


def subscribe(db, address):
    """register with a unique key, which refuses the second of two."""
    with transaction(db) as tx:
        tx.execute("SELECT id FROM subscriber WHERE address = %s", (address,))
        if tx.fetchone():
            raise Taken
        tx.execute("INSERT INTO subscriber (address) VALUES (%s)", (address,))
