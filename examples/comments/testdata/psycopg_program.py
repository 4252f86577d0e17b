"""One deposit with psycopg 3, or 2 where PSYCOPG says so."""
import os

import psycopg_comments

root = os.path.dirname(os.path.abspath(__file__))
if os.environ["PSYCOPG"] == "2":
    import psycopg2
    connect, options = psycopg2.connect, {"cursor_factory": psycopg_comments.psycopg2_cursor(root)}
else:
    import psycopg
    connect, options = psycopg.connect, {"cursor_factory": psycopg_comments.psycopg_cursor(root)}

connection = connect(os.environ["DATABASE_URL"], **options)
with psycopg_comments.action("accounts:deposit"), connection, connection.cursor() as cursor:
    cursor.execute("SELECT balance FROM account WHERE id = %s", (1,))  # READ
    (balance,) = cursor.fetchone()
    cursor.execute("UPDATE account SET balance = %(to)s WHERE id = 1", {"to": balance + 10})  # WRITE
