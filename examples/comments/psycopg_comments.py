"""Says in a comment of each SQL statement what a program of psycopg is doing, and from which line it sends it.

isotap (and whoever else reads sqlcommenter's comments) then names findings by it. For psycopg 3, its pool, and psycopg 2:

    import psycopg_comments
    connection = psycopg.connect(url, cursor_factory=psycopg_comments.psycopg_cursor())
    connection = await psycopg.AsyncConnection.connect(url, cursor_factory=psycopg_comments.psycopg_async_cursor())
    connection = psycopg2.connect(url, cursor_factory=psycopg_comments.psycopg2_cursor())

    with psycopg_comments.action("orders#create"):    # or in the framework's hook that knows the route
        ...

Root is, everywhere, the directory whose files count as the program's: the current one, if none is given. What COPY sends,
and cursors that are named, keep their text.
"""

import contextlib
import contextvars
import os
import sys
import urllib.parse

_action = contextvars.ContextVar("action", default="")
_OWN = os.path.abspath(__file__)


@contextlib.contextmanager
def action(name):
    """Names what the statements within belong to."""
    token = _action.set(name)
    try:
        yield
    finally:
        _action.reset(token)


def psycopg_cursor(root=None):
    """Returns a cursor class for connections of psycopg 3."""
    import psycopg

    class Cursor(psycopg.Cursor):
        def execute(self, query, params=None, **options):
            return super().execute(_said(self, query, params, root), params, **options)

        def executemany(self, query, params_seq, **options):
            return super().executemany(_said(self, query, params_seq, root), params_seq, **options)

        def stream(self, query, params=None, **options):
            return super().stream(_said(self, query, params, root), params, **options)

    return Cursor


def psycopg_async_cursor(root=None):
    """Returns a cursor class for asynchronous connections of psycopg 3."""
    import psycopg

    class AsyncCursor(psycopg.AsyncCursor):
        async def execute(self, query, params=None, **options):
            return await super().execute(_said(self, query, params, root), params, **options)

        async def executemany(self, query, params_seq, **options):
            return await super().executemany(_said(self, query, params_seq, root), params_seq, **options)

        def stream(self, query, params=None, **options):
            return super().stream(_said(self, query, params, root), params, **options)

    return AsyncCursor


def psycopg2_cursor(root=None):
    """Returns a cursor class for connections of psycopg 2."""
    import psycopg2.extensions

    class Cursor(psycopg2.extensions.cursor):
        def execute(self, query, vars=None):
            return super().execute(_said(self, query, vars, root), vars)

        def executemany(self, query, vars_list):
            return super().executemany(_said(self, query, vars_list, root), vars_list)

    return Cursor


def _said(cursor, query, params, root):
    """Returns the query, a text, bytes or sql.Composable, with its comment behind it."""
    if hasattr(query, "as_string"):
        query = query.as_string(cursor)
    said = comment(root)
    if params is not None:  # the driver then takes single percent signs for parameters
        said = said.replace("%", "%%")
    return query + (said.encode() if isinstance(query, bytes) else said)


def comment(root=None):
    """Returns the comment for the statement that is about to be sent, with a blank before it; empty if there is nothing
    to say."""
    pairs = {"controller": _action.get()}
    file, line = _place(os.path.join(os.path.abspath(root or os.getcwd()), ""))
    if file:
        pairs["file"], pairs["line"] = file, str(line)
    said = ["%s='%s'" % (k, urllib.parse.quote(v, safe="/:")) for k, v in sorted(pairs.items()) if v]
    return " /*" + ",".join(said) + "*/" if said else ""


def _place(root):
    frame = sys._getframe(1)
    while frame is not None:
        name = os.path.abspath(frame.f_code.co_filename)
        if name.startswith(root) and name != _OWN and "site-packages" not in name:
            return name[len(root):], frame.f_lineno
        frame = frame.f_back
    return "", 0
