"""Sessions of browsers that ended before they expired, in the store or in a file of their own."""

import time
from functools import cached_property
from pathlib import Path

import structlog
from sqlalchemy import Connection, Engine, create_engine, func, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateTable

from rprime.store.schema import revoked_sessions

MOST_REVOKED = 10_000
"""With more of them all sessions that began before now end, so that the table stays small."""
LASTS_SECONDS = 12 * 60 * 60
"""A working day. A session is never prolonged, so that a stolen cookie expires."""
_ALL = ""

_of = revoked_sessions.c
log = structlog.get_logger(__name__)


def revoke(connection: Connection, session: str, expires: int, now: float) -> None:
    """Record that a session has ended; times are in seconds since 1970."""
    connection.execute(revoked_sessions.delete().where(_of.expires <= now))
    count = connection.scalar(select(func.count()).select_from(revoked_sessions)) or 0
    if count >= MOST_REVOKED:
        connection.execute(revoked_sessions.delete())
        session, expires = _ALL, int(now) + LASTS_SECONDS
    if not is_revoked(connection, session, expires):
        connection.execute(revoked_sessions.insert().values(id=session, expires=expires))


def is_revoked(connection: Connection, session: str, expires: int) -> bool:
    """Whether a session has ended."""
    condition = (_of.id == session) | ((_of.id == _ALL) & (_of.expires >= expires))
    return connection.scalar(select(_of.id).where(condition).limit(1)) is not None


class SessionFile:
    """The ended sessions of a service without a store, in a SQLite file of all of its workers.

    If it cannot be written, each process remembers only what it ended itself.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _engine(self) -> Engine:
        try:
            return _opened(create_engine(f"sqlite:///{self._path}"))
        except OperationalError:
            log.warning(
                "sessions_not_shared",
                detail=f"{self._path} cannot be written: a session that ends here goes on in other "
                "processes of the service, and here after a restart.",
            )
            return _opened(create_engine("sqlite://", poolclass=StaticPool))

    def revoke_session(self, session: str, expires: int) -> None:
        """Record that a session has ended."""
        with self._engine.begin() as connection:
            revoke(connection, session, expires, time.time())

    def is_session_revoked(self, session: str, expires: int) -> bool:
        """Whether a session has ended."""
        with self._engine.connect() as connection:
            return is_revoked(connection, session, expires)


def _opened(engine: Engine) -> Engine:
    with engine.begin() as connection:
        connection.execute(CreateTable(revoked_sessions, if_not_exists=True))
    return engine
