"""Says in a comment of each SQL statement what a SQLAlchemy program is doing, and from which line it sends it.

isotap (and whoever else reads sqlcommenter's comments) then names findings by it. For all engines of a program:

    import sqlalchemy_comments
    sqlalchemy_comments.install()

    with sqlalchemy_comments.action("orders#create"):    # or in the framework's hook that knows the route
        ...
"""

import contextlib
import contextvars
import os
import sys
import urllib.parse

import sqlalchemy.engine
import sqlalchemy.event

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


def install(engine=sqlalchemy.engine.Engine, root=None):
    """Adds comments to what an engine sends; to what all do, if none is given. Root is the directory whose files count
    as the program's: the current one, if none is given."""
    root = os.path.join(os.path.abspath(root or os.getcwd()), "")

    @sqlalchemy.event.listens_for(engine, "before_cursor_execute", retval=True)
    def add(conn, cursor, statement, parameters, context, many):
        pairs = {"controller": _action.get()}
        file, line = _place(root)
        if file:
            pairs["file"], pairs["line"] = file, str(line)
        said = ",".join("%s='%s'" % (k, urllib.parse.quote(v, safe="/:")) for k, v in sorted(pairs.items()) if v)
        if not said:
            return statement, parameters
        if conn.dialect.paramstyle in ("format", "pyformat"):  # a percent sign is a parameter's
            said = said.replace("%", "%%")
        return "%s /*%s*/" % (statement, said), parameters


def _place(root):
    frame = sys._getframe(1)
    while frame is not None:
        name = os.path.abspath(frame.f_code.co_filename)
        if name.startswith(root) and name != _OWN and "site-packages" not in name:
            return name[len(root):], frame.f_lineno
        frame = frame.f_back
    return "", 0
