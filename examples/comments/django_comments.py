"""Says in a comment of each SQL statement which view of a Django project sends it, and from which line.

isotap (and whoever else reads sqlcommenter's comments) then names findings by it: "polls:vote" in place of "UPDATE poll".
Put this file beside settings.py and add its middleware, last:

    MIDDLEWARE = [..., "django_comments.Comments"]

Tests that call no view, and jobs, have the place alone; `with django_comments.action("nightly"):` names them.
"""

import contextlib
import contextvars
import os
import sys
import urllib.parse

from django.conf import settings
from django.db import connections
from django.db.backends.signals import connection_created

_action = contextvars.ContextVar("action", default="")
_ROOT = str(getattr(settings, "BASE_DIR", os.getcwd())) + os.sep
_OWN = os.path.abspath(__file__)


@contextlib.contextmanager
def action(name):
    """Names what the statements within belong to."""
    token = _action.set(name)
    try:
        yield
    finally:
        _action.reset(token)


class Comments:
    """The middleware: each request's statements name its view."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        with action(""):
            return self.get_response(request)

    def process_view(self, request, view, args, kwargs):
        _action.set(request.resolver_match.view_name or view.__name__)


def _place():
    """Returns the file and line of the project's that the statement comes from."""
    frame = sys._getframe(1)
    while frame is not None:
        name = os.path.abspath(frame.f_code.co_filename)
        if name.startswith(_ROOT) and name != _OWN and "site-packages" not in name:
            return name[len(_ROOT):], frame.f_lineno
        frame = frame.f_back
    return "", 0


def comment():
    """Returns the comment for the statement that is about to be sent, with a blank before it; empty if there is nothing
    to say. Percent signs are doubled, as drivers take single ones for parameters."""
    pairs = {"controller": _action.get()}
    file, line = _place()
    if file:
        pairs["file"], pairs["line"] = file, str(line)
    said = ["%s='%s'" % (k, urllib.parse.quote(v, safe="/:")) for k, v in sorted(pairs.items()) if v]
    return " /*" + ",".join(said).replace("%", "%%") + "*/" if said else ""


def _execute(execute, sql, params, many, context):
    said = comment()
    if params is None:  # the driver then leaves percent signs alone
        said = said.replace("%%", "%")
    return execute(sql + said, params, many, context)


def _wrap(connection, **_):
    if _execute not in connection.execute_wrappers:
        connection.execute_wrappers.append(_execute)


connection_created.connect(_wrap)
for _connection in connections.all():
    _wrap(_connection)
