"""API keys in a file: the command line changes it, the service verifies keys with it."""

import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from hashlib import sha256
from hmac import compare_digest
from math import inf
from operator import itemgetter
from pathlib import Path
from time import monotonic
from typing import Annotated, Literal, Self, get_args

import structlog
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

Scope = Literal["evaluate", "read", "write", "admin"]
State = Literal["active", "expired", "revoked"]
Name = Annotated[str, Field(max_length=128, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
SCOPES: tuple[Scope, ...] = get_args(Scope)
FILE_STATES = ("ok", "missing", "unreadable")

# `write` implies `read`, since changing an alias shows its target; `evaluate` does not.
_IMPLIED: dict[Scope, tuple[Scope, ...]] = {"write": ("read",), "admin": SCOPES}
_TOKEN = re.compile(rb"rp_([0-9a-f]{12})_[0-9a-f]{48}")
_ID_BYTES, _SECRET_BYTES = 6, 24
_RETRY_SECONDS = 1.0
_MINUTE = 60.0
WRONG_KEYS_PER_MINUTE = 30
"""Of an address, and of an address with the same id."""
_MOST_COUNTED = 10_000
"""Keys and addresses whose requests are counted at a time."""
# Compared if no key has the id, so that an unknown id takes as long as a wrong secret.
_NO_DIGEST = "0" * 64

log = structlog.get_logger(__name__)


class KeyFileError(Exception):
    """The key file cannot be used; the message says why without quoting its content."""


class MissingKeyFileError(KeyFileError):
    """There is no key file."""


class UnknownKeyError(Exception):
    """No key has this id."""


class RefusedKeyError(Exception):
    """A token, whose id is `key` if it has the form of one; the client may see the message."""

    def __init__(self, message: str, key: str | None) -> None:
        super().__init__(message)
        self.key = key


class TooManyWrongKeysError(Exception):
    """An address sends wrong keys too often; the next may come after so many `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__("Too many wrong keys came from this address.")
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Access:
    """What a request may do."""

    key: str | None
    """The id of the key; None if the service needs no keys."""
    scopes: frozenset[Scope]
    """The scopes, with implied ones."""
    project: str | None
    """The only project, or None for all."""

    def may(self, *scopes: Scope) -> bool:
        """Whether the access has one of the scopes."""
        return not self.scopes.isdisjoint(scopes)

    def may_use(self, project: str) -> bool:
        """Whether the access covers a project."""
        return self.project is None or self.project == project


EVERYTHING = Access(key=None, scopes=frozenset(SCOPES), project=None)
"""The access of every request if the service needs no keys."""


class ApiKey(BaseModel):
    """A key in the file.

    No field has a default: a lost field must not give a key more projects or more time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    id: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    name: Name
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    project: str | None
    created: AwareDatetime
    expires: AwareDatetime | None
    revoked: AwareDatetime | None

    @model_validator(mode="after")
    def _admin_has_no_project(self) -> Self:
        if "admin" in self.scopes and self.project is not None:
            raise ValueError("the scope admin is for all projects, so its key has no project")
        return self

    @property
    def state(self) -> State:
        """Whether the key is active, expired or revoked."""
        if self.revoked is not None:
            return "revoked"
        return "active" if self.expires is None or datetime.now(UTC) < self.expires else "expired"

    @cached_property
    def access(self) -> Access:
        """The access of a request with the key."""
        implied = (scope for granted in self.scopes for scope in _IMPLIED.get(granted, ()))
        return Access(self.id, frozenset((*self.scopes, *implied)), self.project)


class _Content(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    version: Literal[1]
    keys: tuple[ApiKey, ...]

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Self:
        if len({key.id for key in self.keys}) < len(self.keys):
            raise ValueError("two keys have the same id")
        return self


def read(path: Path) -> tuple[ApiKey, ...]:
    """Read all keys, the oldest first; a `KeyFileError` if the file is not as it has to be."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise KeyFileError(f"{path} is not a regular file")
        if mode & stat.S_IWOTH:
            raise KeyFileError(f"everybody may write {path}; chmod 600 it")
        content = path.read_bytes()
    except FileNotFoundError:
        raise MissingKeyFileError(f"{path} does not exist; rprime keys create makes it") from None
    except OSError as exc:
        raise KeyFileError(f"cannot read {path}: {exc.strerror}") from None
    try:
        return _Content.model_validate_json(content).keys
    except ValidationError as exc:
        error = exc.errors(include_url=False, include_context=False, include_input=False)[0]
        place = "/".join(map(str, error["loc"]))
        detail = error["msg"].removeprefix("Value error, ") + (f" at {place}" if place else "")
        raise KeyFileError(f"{path} is damaged: {detail}") from None


def create(
    path: Path,
    scopes: Iterable[Scope],
    *,
    project: str | None = None,
    lasts: timedelta | None = None,
    name: str = "",
) -> tuple[ApiKey, str]:
    """Add a key to the file, which is created if it is missing; return its token, too.

    Nothing keeps the token. Without `project` the key is for all, without `lasts` for ever. Values
    that are not valid for a key raise a `ValidationError`.
    """
    now = datetime.now(UTC).replace(microsecond=0)
    with _locked(path):
        keys: tuple[ApiKey, ...] = ()
        with suppress(MissingKeyFileError):
            keys = read(path)
        taken = {key.id for key in keys}
        while (key_id := secrets.token_hex(_ID_BYTES)) in taken:
            pass
        token = f"rp_{key_id}_{secrets.token_hex(_SECRET_BYTES)}"
        key = ApiKey(
            id=key_id,
            sha256=_digest(token.encode()),
            name=name,
            scopes=tuple(dict.fromkeys(scopes)),
            project=project,
            created=now,
            expires=None if lasts is None else now + lasts,
            revoked=None,
        )
        _write(path, [*keys, key])
    return key, token


def revoke(path: Path, key_id: str) -> ApiKey | None:
    """Revoke a key, which stays in the file to resolve its id in the log; None if it was before.

    Raises
    ------
    UnknownKeyError
        If no key has the id.
    """
    with _locked(path):
        keys = {key.id: key for key in read(path)}
        if key_id not in keys:
            raise UnknownKeyError
        if keys[key_id].revoked is not None:
            return None
        now = datetime.now(UTC).replace(microsecond=0)
        keys[key_id] = keys[key_id].model_copy(update={"revoked": now})
        _write(path, list(keys.values()))
    return keys[key_id]


class RequestLimits:
    """Counts requests of one kind in this process, as a bucket that refills evenly (GCRA).

    Those of a minute may come all at once; None: as many as come.
    """

    def __init__(self, per_minute: int | None) -> None:
        self._interval = 0.0 if per_minute is None else _MINUTE / per_minute
        self._full_at: dict[object, float] = {}

    def take(self, key: object) -> float:
        """Count a request; return how many seconds too early it comes, 0 if it may pass."""
        if not self._interval:
            return 0.0
        if early := self.early(key):
            return early
        now = monotonic()
        if len(self._full_at) >= _MOST_COUNTED:
            self._forget(now)
        self._full_at[key] = max(self._full_at.get(key, now), now) + self._interval
        return 0.0

    def early(self, key: object) -> float:
        """Return how many seconds too early a request would come, without counting it."""
        if key not in self._full_at:
            return 0.0
        return max(0.0, self._full_at[key] + self._interval - monotonic() - _MINUTE)

    def _forget(self, now: float) -> None:
        """Forget whose bucket is full again, and if that is nobody the half that is fullest."""
        counted = sorted(self._full_at.items(), key=itemgetter(1))[_MOST_COUNTED // 2 :]
        self._full_at = {key: full_at for key, full_at in counted if full_at > now}


class Keyring:
    """The valid keys, from the current content of the file.

    While the file cannot be read, the last readable keys stay valid; without a file there are none.
    No state of the file admits requests without a key. Each key may send `per_minute` requests to
    this process in a minute; None: as many as it likes.
    """

    def __init__(self, path: Path, per_minute: int | None = None) -> None:
        self.path = path
        self.limits = RequestLimits(per_minute)
        self._wrong = RequestLimits(WRONG_KEYS_PER_MINUTE)
        self._keys: dict[str, ApiKey] = {}
        self._stamp: object = None
        self._failure: str | None = None
        self._state = "missing"
        self._retry_at = inf

    def verify(self, token: bytes, address: str | None = None) -> Access:
        """Return the access of a token, or refuse it: a wrong id as slowly as a wrong secret.

        After too many wrong secrets of an id, that id gets a `TooManyWrongKeysError` from the same
        address; after too many wrong keys in all, only further wrong ones do: others behind the
        same proxy have keys of other ids, and go on.
        """
        self.refresh()
        form = _TOKEN.fullmatch(token)
        key_id = None if form is None else form[1].decode()
        if early := self._wrong.early((address, key_id)):
            raise TooManyWrongKeysError(early)
        key = None if key_id is None else self._keys.get(key_id)
        same = compare_digest(_digest(token), _NO_DIGEST if key is None else key.sha256)
        if key is None or not same:
            if early := max(self._wrong.take((address, who)) for who in {None, key_id}):
                raise TooManyWrongKeysError(early)
            raise RefusedKeyError("The key is not valid.", key_id)
        # Only a client with the secret learns the state of the key.
        return _active(key).access

    def find(self, key_id: str) -> ApiKey:
        """Return a key by its id, for a session that signed in with its token, or refuse it."""
        self.refresh()
        key = self._keys.get(key_id)
        if key is None:
            raise RefusedKeyError("The key no longer exists.", key_id)
        return _active(key)

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        stamp = _stamp(self.path)
        if stamp == self._stamp and monotonic() < self._retry_at:
            return
        # Taken before reading, so that a change in between makes the next stamp differ.
        self._stamp = stamp
        try:
            keys = read(self.path)
        except KeyFileError as exc:
            if isinstance(exc, MissingKeyFileError):
                self._keys, self._state = {}, "missing"
                detail = f"{exc}. Until then every key is refused."
                tell = partial(log.error, "keys_missing")
            else:
                self._state = "unreadable"
                detail = f"{exc}. The keys of the last successful reading stay valid."
                tell = partial(log.error, "keys_unreadable")
            if detail != self._failure:
                tell(detail=detail)
            self._failure, self._retry_at = detail, monotonic() + _RETRY_SECONDS
        else:
            before = None if self._state == "missing" else self._keys
            self._keys = {key.id: key for key in keys}
            self._failure, self._state, self._retry_at = None, "ok", inf
            _report(self.path, self._keys, before)

    def reload(self) -> None:
        """Read the file again, even if it has not changed."""
        self._stamp = None
        self.refresh()

    @property
    def state(self) -> str:
        """The state of the file, one of `FILE_STATES`."""
        self.refresh()
        return self._state


def _active(key: ApiKey) -> ApiKey:
    if (state := key.state) != "active":
        raise RefusedKeyError(f"The key is {state}.", key.id)
    return key


def _stamp(path: Path) -> object:
    try:
        status = os.stat(path)  # noqa: PTH116 - runs with each request, and pathlib takes twice as long
    except OSError as exc:
        return exc.errno
    # The time of the last change of the inode covers its content, its mode and its owner.
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


def _report(path: Path, keys: Mapping[str, ApiKey], before: Mapping[str, ApiKey] | None) -> None:
    differences = {}
    if before is not None:
        differences = {
            "added": [key_id for key_id in keys if key_id not in before],
            "changed": [i for i, key in keys.items() if i in before and key != before[i]],
            "removed": [key_id for key_id in before if key_id not in keys],
        }
    active = sum(key.state == "active" for key in keys.values())
    log.info("keys_read", file=str(path), keys=len(keys), active=active, **differences)
    # Only a warning: mounted secrets are often world-readable, and digests open nothing.
    # If the file is gone by now, the next request reports it.
    with suppress(OSError):
        # The group may read it: Kubernetes mounts secrets for a group.
        if (mode := stat.S_IMODE(path.stat().st_mode)) & (stat.S_IWGRP | stat.S_IRWXO):
            log.warning("keys_exposed", detail=f"{path} has the mode {mode:03o}; chmod 640 it.")


def _digest(token: bytes) -> str:
    # A slow hash protects passwords of people; 192 random bits cannot be guessed however fast the
    # hash is, and a slow one would let anyone keep the service busy with wrong keys.
    return sha256(token).hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock out other commands; changes replace the file, so its folder is locked."""
    import fcntl  # noqa: PLC0415 - missing on Windows, and only changing the file needs it

    try:
        folder = os.open(path.resolve().parent, os.O_RDONLY)
    except OSError as exc:
        raise KeyFileError(f"cannot open the folder of {path}: {exc.strerror}") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
        os.fsync(folder)
    finally:
        os.close(folder)


def _write(path: Path, keys: Sequence[ApiKey]) -> None:
    content = _Content(version=1, keys=tuple(keys)).model_dump_json(indent=2) + "\n"
    # Replace the target of a link, not the link.
    target = path.resolve()
    try:
        # Created with the mode 0600.
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(content)
                file.flush()
                os.fsync(handle)
                if os.geteuid() == 0 and target.exists():
                    # root made the change, but the service must still be able to read the file.
                    owner = target.stat()
                    os.fchown(handle, owner.st_uid, owner.st_gid)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink()
            raise
    except OSError as exc:
        raise KeyFileError(f"cannot write {path}: {exc.strerror}") from None
