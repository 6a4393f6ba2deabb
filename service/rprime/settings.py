"""Every setting of the service, read once from the environment."""

import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ByteSize,
    DirectoryPath,
    Field,
    IPvAnyNetwork,
    PositiveInt,
    SecretStr,
    TypeAdapter,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

MIB = 1024 * 1024
_DAY = 24 * 60 * 60
Seconds = Annotated[float, Field(gt=0, le=_DAY)]
_SIZE: TypeAdapter[int] = TypeAdapter(ByteSize)
Size = Annotated[int, BeforeValidator(lambda value: int(_SIZE.validate_python(value))), Field(gt=0)]
"""A number of bytes, or a text such as `32MiB`."""
GUIDE = Path(__file__).with_name("guide")
"""Where `mkdocs build` writes the documentation site; a wheel built after it has it, too."""

_IDLE_BYTES = 208 * MIB
"""The memory of a service and of a worker that have no request."""
LEAST_MEMORY = 256 * MIB
_AMPLE_BYTES = 1024 * MIB
"""The memory for which the limits have their defaults."""
_CGROUP_FILES = {"": ("", "memory.max"), "memory": ("memory", "memory.limit_in_bytes")}
"""Folder and file of a limit, by the controller in `/proc/self/cgroup`: versions 2 and 1."""


def available_memory(
    root: Path = Path("/sys/fs/cgroup"), groups: Path = Path("/proc/self/cgroup")
) -> int:
    """Return the least limit of the process's control groups in bytes, at most 1 GiB.

    A container sees its own group as the root; a unit of systemd has a path of its own. Limits
    of the groups above hold, too.
    """
    places = [("", "/"), ("memory", "/")]
    with suppress(OSError):
        lines = [line.split(":", 2) for line in groups.read_text(encoding="utf-8").splitlines()]
        places += [
            (controller, path) for _, controller, path in lines if controller in _CGROUP_FILES
        ]
    limits = [_AMPLE_BYTES]
    for controller, path in places:
        folder, file = _CGROUP_FILES[controller]
        for group in (path, *Path(path).parents):
            with suppress(OSError, ValueError):
                place = root / folder / str(group).lstrip("/") / file
                limits.append(int(place.read_text(encoding="ascii")))
    return min(limits)


class Limits(BaseModel, frozen=True, extra="forbid"):
    """The limits of a request; published at ``/version``."""

    json_body_bytes: Size = Field(32 * MIB, description="Largest JSON body, inflated, in bytes.")
    other_body_bytes: Size = Field(
        256 * MIB, description="Largest CSV, Arrow, Parquet or NPZ body, inflated, in bytes."
    )
    in_flight_bytes: Size = Field(
        512 * MIB,
        description="All request bodies in memory at the same time, in bytes; as many may wait in "
        "the temporary folder.",
    )
    in_flight_requests: PositiveInt = Field(
        256, description="Most requests that are not answered yet; further ones get 503."
    )
    connections: PositiveInt = Field(
        1_000,
        description="Most open connections of a process. Beyond it those are closed whose clients "
        "have kept it waiting longest; where it waits for none, new ones get 503.",
    )
    json_depth: PositiveInt = Field(8, description="Deepest nesting of a JSON body.")
    dense_classes: PositiveInt = Field(
        1_000, description="Most classes of a `confusion_matrix` or of scores."
    )
    sparse_classes: PositiveInt = Field(
        100_000, description="Most classes of `cells` or of label arrays."
    )
    large_requests: PositiveInt = Field(
        2,
        description="Large JSON bodies and column bodies that run at a time, each in its own "
        "process.",
    )
    worker_bytes: Size | None = Field(
        None,
        description="Most memory that a worker may allocate for a request, in bytes; null: as much "
        "as its body needs.",
    )
    worker_seconds: Seconds = Field(
        180,
        description="How long a worker may take to read a body and to answer; then it is ended, "
        "and its request gets 503.",
    )
    large_waiting: PositiveInt = Field(
        32, description="More of them that may wait; further ones get 503."
    )
    wait_seconds: Seconds = Field(
        2, description="How long a complete request may wait for its turn; then it gets 503."
    )
    head_bytes: Size = Field(
        128 * 1024,
        description="Largest head of a request, and most framing of a chunked body beyond that of "
        "chunks of one byte, in bytes.",
    )
    head_seconds: Seconds = Field(
        10, description="How long a client may take to send the head of a request."
    )
    body_seconds: Seconds = Field(
        20,
        description="How long a body may take, plus the time its received bytes take at "
        "`body_bytes_per_second`.",
    )
    body_bytes_per_second: Size = Field(
        16 * 1024, description="Lowest average speed at which a client must send a body."
    )
    answer_seconds: Seconds = Field(
        30, description="How long a client may stop reading its answer."
    )
    keep_alive_seconds: PositiveInt = Field(
        5, description="How long an idle connection stays open for the next request."
    )
    batch_requests: PositiveInt = Field(100, description="Most evaluations in one batch.")
    top_confusions: PositiveInt = Field(10, description="Confusions in a report.")

    def fitted(self, memory: int) -> "Limits":
        """Lower the limits that were not set to fit the bytes of the service and its workers."""
        left = max(memory, LEAST_MEMORY) - _IDLE_BYTES
        share = left / (_AMPLE_BYTES - _IDLE_BYTES)
        if share >= 1:
            return self
        names = ("json_body_bytes", "other_body_bytes", "in_flight_bytes", "connections")
        fitting = {name: int(share * getattr(self, name)) for name in names}
        fitting |= {"large_requests": 1, "worker_bytes": left}
        fields_set = self.model_fields_set
        return self.model_copy(update={n: v for n, v in fitting.items() if n not in fields_set})


def _origin(value: str) -> str:
    if value != "*" and not re.fullmatch(r"https?://[^/\s]+", value):
        raise ValueError("value is not a web origin such as https://app.example")
    return value


def _host(value: str) -> str:
    if not re.fullmatch(r"\*|[\w.-]+|\[[\da-fA-F:.]+\]", value):
        raise ValueError("value is not a name such as rprime.example.org, without scheme and port")
    return value


_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
Origin = Annotated[str, AfterValidator(_origin)]
Host = Annotated[str, AfterValidator(_host)]


class Settings(BaseSettings):
    """The settings, from variables that start with ``RPRIME_``.

    A limit is set by its name, as in ``RPRIME_LIMITS_JSON_BODY_BYTES``.
    """

    model_config = SettingsConfigDict(
        env_prefix="RPRIME_",
        env_nested_delimiter="_",
        env_nested_max_split=1,
        env_ignore_empty=True,
        frozen=True,
        populate_by_name=True,
    )

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(
        8000,
        ge=0,
        le=65535,
        validation_alias=AliasChoices("RPRIME_PORT", "PORT"),
        description="Port to listen on; 0 takes a free one.",
    )
    uds: Path | None = Field(
        None,
        description="Unix socket to listen on in place of host and port; its mode is 0660, so "
        "owner and group may connect.",
    )
    root_path: str = Field(
        "",
        pattern=r"^(/[\w.~-]+)*$",
        description="The prefix that a proxy strips from paths, such as `/rprime`; `Location`, "
        "links and the `type` of problems then have it.",
    )
    hosts: Annotated[tuple[Host, ...], NoDecode] = Field(
        (),
        description="Names that the header Host may have, without port, separated by commas, or "
        "`*`; set it behind a proxy. Default: its own names on loopback, with keys any.",
    )
    trusted_proxies: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        (),
        description="Networks such as `10.0.0.0/8`, separated by commas: the proxies whose "
        "X-Forwarded-For or Forwarded names the client in the log.",
    )
    insecure: bool = Field(
        default=False,
        description="Listen on any address, even without keys; `RPRIME_HOSTS` must then be set.",
    )
    keys_file: Path | None = Field(
        None, description="The key file of `rprime keys`; if set, every request needs a key."
    )
    key_requests_per_minute: PositiveInt | None = Field(
        None,
        description="Requests that each key may send to each process in a minute; further ones "
        "get 429 with `Retry-After`. Default: any number.",
    )
    session_secret: SecretStr = Field(
        default_factory=lambda: SecretStr(secrets.token_urlsafe(32)),
        min_length=32,
        description="Signs the sessions of the pages: at least 32 characters, the same for all "
        "replicas. By default each start draws one, so a restart ends all sessions.",
    )
    store: str = Field(
        "sqlite:///rprime.db",
        description="Where evaluations are stored: `none` (the default of the image) or a URL such "
        "as `sqlite:///rprime.db` or `postgresql://user:password@host/database`, whose password is "
        "percent-encoded (`%40` for `@`).",
    )
    store_connections: int = Field(
        10,
        ge=2,
        description="Most connections of each process to PostgreSQL; further requests wait for "
        "one.",
    )
    store_connect_seconds: Seconds = Field(
        5,
        ge=2,
        description="How long a connection to PostgreSQL may take, for each of its addresses.",
    )
    store_lock_seconds: Seconds = Field(
        5,
        description="How long a request waits for a lock of another program or transaction, or "
        "for a free connection; then it gets 503.",
    )
    store_seconds: Seconds = Field(
        10,
        description="How long PostgreSQL may take to answer a statement; then the request gets "
        "503.",
    )
    project_max_bytes: ByteSize | None = Field(
        None,
        gt=0,
        description="Most bytes of the evaluations of a project, such as `2GiB`; then storing "
        "gets 507. Default: any number.",
    )
    cors_origins: Annotated[tuple[Origin, ...], NoDecode] = Field(
        (), description="Web origins that may call the service, separated by commas."
    )
    guide: DirectoryPath | None = Field(
        GUIDE if GUIDE.is_dir() else None,
        description="Folder of the built documentation site, shown at `/guide`; default: the one "
        "in the package.",
    )
    drain_seconds: float = Field(
        1,
        ge=0,
        le=_DAY,
        description="How long `/readyz` answers 503 after SIGTERM before the service takes no more "
        "connections; longer than your load balancer needs to notice.",
    )
    stop_seconds: PositiveInt = Field(
        8,
        le=_DAY,
        description="How long running requests may then take; 0.9 seconds later the process ends "
        "in any case. Docker waits 10 s in all.",
    )
    log_requests: bool = Field(
        default=False, description="Log every request, not only failures and changes."
    )
    memory: ByteSize = Field(
        default_factory=lambda: ByteSize(available_memory()),
        ge=LEAST_MEMORY,
        description="Memory of a replica, at least 256 MiB, such as `512MiB`; below 1 GiB the "
        "limits are lowered. Default: that of its control group, at most 1 GiB.",
    )
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _fit(self) -> "Settings":
        fields_set, limits = self.limits.model_fields_set, self.limits.fitted(self.memory)
        bodies = ("json_body_bytes", "other_body_bytes")
        larger = [n for n in bodies if getattr(limits, n) > limits.in_flight_bytes]
        for name in larger:
            if name in fields_set:
                raise ValueError(
                    f"RPRIME_LIMITS_{name.upper()} is more than RPRIME_LIMITS_IN_FLIGHT_BYTES "
                    f"({limits.in_flight_bytes}), so such a body would never be admitted"
                )
        limits = limits.model_copy(update=dict.fromkeys(larger, limits.in_flight_bytes))
        object.__setattr__(self, "limits", limits)
        if limits.worker_bytes is not None and limits.worker_bytes > self.memory:
            raise ValueError("RPRIME_LIMITS_WORKER_BYTES is more than RPRIME_MEMORY")
        return self

    @field_validator("cors_origins", "hosts", "trusted_proxies", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value

    @property
    def known_hosts(self) -> frozenset[str] | None:
        """The allowed values of the header Host; None allows any."""
        if self.hosts:
            return None if "*" in self.hosts else frozenset(self.hosts)
        if self.uds is not None:
            # A proxy passes on any name, of which without keys a page could read what is kept.
            return None if self.keys_file is not None else frozenset(_LOOPBACK)
        host = f"[{self.host}]" if ":" in self.host else self.host
        return frozenset({*_LOOPBACK, host}) if self.loopback else None

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        if self.uds is not None:
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


_OF_COMMANDS = {"RPRIME_SERVER", "RPRIME_KEY"}
_OF_KUBERNETES = re.compile(r"RPRIME_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_\w+)")
"""What Kubernetes sets in every container of a namespace that has a service named rprime."""


def unknown_variables(environment: Iterable[str]) -> dict[str, str | None]:
    """Return the variables ``RPRIME_...``, in any case, that set nothing, with the nearest ones."""
    names = [f"RPRIME_{name}".upper() for name in Settings.model_fields]
    names += [f"RPRIME_LIMITS_{name}".upper() for name in Limits.model_fields]
    variables = {name.upper() for name in environment if name.upper().startswith("RPRIME_")}
    unknown = sorted(variables - _OF_COMMANDS - set(names))
    names.remove("RPRIME_LIMITS")
    return {
        name: next(iter(get_close_matches(name, names, n=1, cutoff=0.8)), None)
        for name in unknown
        if not _OF_KUBERNETES.fullmatch(name)
    }
