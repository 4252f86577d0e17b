"""One deposit with Django's ORM, in a view."""
import os
import sys
import urllib.parse

import django
from django.conf import settings

url = urllib.parse.urlsplit(os.environ["DATABASE_URL"])
settings.configure(
    BASE_DIR=os.path.dirname(os.path.abspath(__file__)),
    ROOT_URLCONF=__name__,
    SECRET_KEY="x",
    ALLOWED_HOSTS=["*"],
    MIDDLEWARE=["django_comments.Comments"],
    DATABASES={"default": {
        "ENGINE": "django.db.backends." + ("postgresql" if url.scheme == "postgres" else "mysql"),
        "NAME": url.path[1:], "USER": url.username, "PASSWORD": url.password or "", "HOST": url.hostname, "PORT": url.port,
    }},
)
django.setup()

from django.db import models, transaction  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import path  # noqa: E402


class Account(models.Model):
    id = models.IntegerField(primary_key=True)
    balance = models.IntegerField()

    class Meta:
        app_label = "bank"
        db_table = "account"


def deposit(request):
    with transaction.atomic():
        account = Account.objects.get(pk=1)  # READ
        account.balance += 10
        account.save()  # WRITE
    return HttpResponse()


urlpatterns = [path("deposit", deposit, name="accounts:deposit")]

if Client().get("/deposit").status_code != 200:
    sys.exit("the view failed")
