"""Settings for Django's own tests: the server that the environment names, and a runner that writes what became of each
test to a file."""

import json
import os

from django.test.runner import DiscoverRunner

_env = os.environ
_postgresql = _env["SUITE_FAMILY"] == "PostgreSQL"


def _database(name):
    return {
        "ENGINE": "django.db.backends." + ("postgresql" if _postgresql else "mysql"),
        "HOST": _env["SUITE_HOST"],
        "PORT": _env["SUITE_PORT"],
        "USER": _env["SUITE_USER"],
        "PASSWORD": _env["SUITE_PASSWORD"],
        "NAME": "postgres" if _postgresql else "django_" + name,
        "TEST": {"NAME": "django_test_" + name},
    }


DATABASES = {"default": _database("default"), "other": _database("other")}
SECRET_KEY = "for tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False


class Runner(DiscoverRunner):
    def get_resultclass(self):
        import unittest

        outcomes = {}

        class Result(unittest.TextTestResult):
            def _note(self, test, result, said=""):
                # A test with a failing part is a failing one.
                if outcomes.get(test.id(), {}).get("Result") != "fail":
                    outcomes[test.id()] = {"Result": result, "Said": said}

            def addSuccess(self, test):
                super().addSuccess(test)
                self._note(test, "pass")

            def addExpectedFailure(self, test, err):
                super().addExpectedFailure(test, err)
                self._note(test, "pass")

            def addSkip(self, test, reason):
                super().addSkip(test, reason)
                self._note(test, "skip", reason)

            def addFailure(self, test, err):
                super().addFailure(test, err)
                self._note(test, "fail", self._exc_info_to_string(err, test))

            def addError(self, test, err):
                super().addError(test, err)
                self._note(test, "fail", self._exc_info_to_string(err, test))

            def addUnexpectedSuccess(self, test):
                super().addUnexpectedSuccess(test)
                self._note(test, "fail", "unexpected success")

            def addSubTest(self, test, subtest, err):
                super().addSubTest(test, subtest, err)
                if err is not None:
                    self._note(test, "fail", self._exc_info_to_string(err, test))

            def stopTestRun(self):
                super().stopTestRun()
                with open(_env["SUITE_RESULTS"], "w") as f:
                    json.dump(outcomes, f)

        return Result


TEST_RUNNER = "isotap_settings.Runner"
