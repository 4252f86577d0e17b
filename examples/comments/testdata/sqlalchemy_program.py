"""One deposit with SQLAlchemy's ORM."""
import os

import sqlalchemy
from sqlalchemy.orm import Session, declarative_base

import sqlalchemy_comments

sqlalchemy_comments.install(root=os.path.dirname(os.path.abspath(__file__)))
url = sqlalchemy.engine.make_url(os.environ["DATABASE_URL"])
driver = "mysql+pymysql" if url.drivername == "mysql" else "postgresql+psycopg2"
engine = sqlalchemy.create_engine(url.set(drivername=driver))
Base = declarative_base()


class Account(Base):
    __tablename__ = "account"
    id = sqlalchemy.Column(sqlalchemy.Integer, primary_key=True)
    balance = sqlalchemy.Column(sqlalchemy.Integer)


with sqlalchemy_comments.action("accounts:deposit"), Session(engine) as session:
    account = session.get(Account, 1)  # READ
    account.balance += 10
    session.commit()  # WRITE
