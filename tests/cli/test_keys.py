"""The key file and the commands that change it."""

import json
import os
import re
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
import structlog
from pydantic import ValidationError

from rprime.auth import keys
from rprime.auth.keys import SCOPES, Access, KeyFileError, Keyring, RefusedKeyError, Scope
from tests.command import Run

FORM = re.compile(r"rp_([0-9a-f]{12})_([0-9a-f]{48})")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def damage(path: Path) -> None:
    path.write_text(path.read_text()[:-20])


def refused(keyring: Keyring, token: str) -> str:
    with pytest.raises(RefusedKeyError) as caught:
        keyring.verify(token.encode())
    return str(caught.value)


# The command


def test_a_key_is_printed_once_and_kept_as_a_hash(rprime: Run, path: Path) -> None:
    made = rprime("keys", "create", "--scope", "evaluate", RPRIME_KEYS_FILE=str(path))
    form = FORM.fullmatch(made.stdout.strip())
    assert form
    assert form[1] in path.read_text()
    assert form[2] not in path.read_text()
    listed = rprime("keys", "list", "--file", str(path)).stdout
    assert form[1] in listed
    assert form[2] not in listed + made.stderr


def test_a_key_is_what_was_asked_for(rprime: Run, path: Path) -> None:
    scopes = ("--scope", "evaluate", "--scope", "read")
    others = ("--project", "p", "--expires", "90d", "--name", "CI")
    rprime("keys", "create", *scopes, *others, "--file", str(path))
    (key,) = keys.read(path)
    assert (key.scopes, key.project, key.name) == (("evaluate", "read"), "p", "CI")
    assert key.expires == key.created + timedelta(days=90)
    assert key.state == "active"


@pytest.mark.parametrize(
    ("given", "hours"), [("12h", 12), ("90d", 2160), ("4w", 672), ("never", None), (None, 2160)]
)
def test_a_key_lasts_as_long_as_was_said(
    rprime: Run, path: Path, given: str | None, hours: int | None
) -> None:
    expires = ["--expires", given] if given else []
    rprime("keys", "create", "--scope", "read", *expires, "--file", str(path))
    (key,) = keys.read(path)
    assert (key.expires and key.expires - key.created) == (hours and timedelta(hours=hours))


def test_the_list_tells_the_state_of_every_key(rprime: Run, path: Path) -> None:
    active, _ = keys.create(path, ["read"], name="of the dashboard")
    expired, _ = keys.create(path, ["evaluate"], project="p", lasts=timedelta(0))
    revoked, _ = keys.create(path, ["admin"])
    keys.revoke(path, revoked.id)
    rows = rprime("keys", "list", "--file", str(path)).stdout.splitlines()
    assert re.split(r"  +", rows[0]) == ["ID", "STATE", "SCOPES", "PROJECT", "EXPIRES", "NAME"]
    assert re.split(r"  +", rows[1]) == [
        *(active.id, "active", "read", "*", "never", "of the dashboard")
    ]
    assert re.split(r"  +", rows[2])[:4] == [expired.id, "expired", "evaluate", "p"]
    assert re.split(r"  +", rows[3])[:3] == [revoked.id, "revoked", "admin"]


def test_a_key_can_be_revoked_and_stays_so(rprime: Run, path: Path) -> None:
    key, _ = keys.create(path, ["read"])
    other, _ = keys.create(path, ["read"])
    first, second = (rprime("keys", "revoke", key.id, "--file", str(path)) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0)
    assert second.stderr == f"rprime: key {key.id} was revoked before\n"
    assert [key.state for key in keys.read(path)] == ["revoked", "active"]
    assert keys.read(path)[1] == other


def test_each_change_of_a_key_is_a_line_of_the_log(rprime: Run, path: Path) -> None:
    arguments = ("--scope", "write", "--project", "shop", "--expires", "4w", "--name", "of Ada")
    by = {"RPRIME_KEYS_FILE": str(path), "SUDO_USER": "ada", "USER": "root"}
    made = rprime("keys", "create", *arguments, **by)
    (key,) = keys.read(path)
    assert key.expires
    ended = rprime("keys", "revoke", key.id, **by)
    for done, event in ((made, "key_created"), (ended, "key_revoked")):
        line = json.loads(done.stderr)
        assert datetime.fromisoformat(line.pop("timestamp")).tzinfo
        assert line == {
            "event": event,
            "level": "info",
            "key": key.id,
            "scopes": ["write"],
            "project": "shop",
            "expires": key.expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "file": str(path),
            "uid": os.getuid(),
            "user": "ada",
        }
    assert ended.stdout == ""
    assert rprime("keys", "list", **by).stderr == ""


def test_only_a_key_that_exists_can_be_revoked(rprime: Run, path: Path) -> None:
    keys.create(path, ["read"])
    done = rprime("keys", "revoke", "0" * 12, "--file", str(path))
    assert (done.returncode, done.stderr) == (
        2,
        "rprime: no key has this id; rprime keys list shows them\n",
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("--scope all", "--scope"),
        ("--scope read --project /etc", "--project"),
        ("--scope read --expires 0d", "--expires"),
        ("--scope read --expires 3y", "--expires"),
        ("--scope read --name a\x1b[2J", "--name"),
        ("--scope read --scope admin --project p", "--project"),
        ("--project p", "--scope"),
    ],
)
def test_a_wrong_option_is_named(rprime: Run, path: Path, arguments: str, named: str) -> None:
    done = rprime("keys", "create", *arguments.split(" "), "--file", str(path))
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert not path.exists()


@pytest.mark.parametrize("command", [("list",), ("revoke", "0" * 12), ("create", "--scope=read")])
def test_the_commands_say_which_file_is_missing_or_damaged(
    rprime: Run, path: Path, command: tuple[str, ...]
) -> None:
    assert "RPRIME_KEYS_FILE" in rprime("keys", *command).stderr
    path.write_text("{")
    done = rprime("keys", *command, "--file", str(path))
    assert done.returncode == 2
    assert f"{path} is damaged" in done.stderr
    assert path.read_text() == "{"


def test_the_help_explains_every_scope(rprime: Run) -> None:
    shown = rprime("keys", "create", "--help", COLUMNS="200").stdout
    assert all(f"{scope}:" in shown for scope in SCOPES)


# The file


def test_the_file_is_for_its_owner_alone(path: Path) -> None:
    keys.create(path, ["read"])
    assert mode(path) == 0o600
    path.chmod(0o644)
    keys.create(path, ["read"])
    assert mode(path) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_link_to_the_file_stays_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(path)
    key, _ = keys.create(link, ["read"])
    assert link.is_symlink()
    assert keys.read(path) == (key,)


def test_keys_that_are_made_at_the_same_time_are_all_kept(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: keys.create(path, ["read"])[0], range(40)))
    assert {key.id for key in keys.read(path)} == {key.id for key in made}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another owner")
def test_root_leaves_the_file_to_its_owner(path: Path) -> None:
    keys.create(path, ["read"])
    os.chown(path, 1234, 1234)
    keys.create(path, ["read"])
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1234)


def test_a_file_that_everybody_may_write_is_refused(path: Path) -> None:
    keys.create(path, ["read"])
    path.chmod(0o606)
    with pytest.raises(KeyFileError, match="everybody may write"):
        keys.read(path)


def test_what_is_no_file_is_refused(path: Path, tmp_path: Path) -> None:
    os.mkfifo(path)
    for other in (path, tmp_path):
        with pytest.raises(KeyFileError, match="is not a regular file"):
            keys.read(other)
    with pytest.raises(KeyFileError, match="cannot open the folder of"):
        keys.create(tmp_path / "nowhere" / "keys.json", ["read"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"version": 2}, "Input should be 1 at version"),
        ({"more": 1}, "Extra inputs are not permitted at more"),
        ({"keys": [{}]}, "Field required at keys/0/id"),
        ({"project": ...}, "Field required at keys/0/project"),
        ({"expires": ...}, "Field required at keys/0/expires"),
        ({"expires": "2030-01-01T00:00:00"}, "Input should have timezone info at keys/0/expires"),
        ({"scopes": []}, "at least 1 item"),
        ({"scopes": ["canary"]}, "Input should be 'evaluate', 'read', 'write' or 'admin'"),
        ({"scopes": ["admin"]}, "the scope admin is for all projects"),
        ({"sha256": "canary"}, "should match pattern"),
        ({"twice": True}, "Extra inputs are not permitted at keys/0/twice"),
    ],
)
def test_a_damaged_file_is_refused_without_repeating_it(
    path: Path, changes: dict[str, object], expected: str
) -> None:
    keys.create(path, ["read"], project="p")
    document = json.loads(path.read_text())
    for name, value in changes.items():
        place = document if name in {"version", "keys", "more"} else document["keys"][0]
        if value is ...:
            del place[name]
        else:
            place[name] = value
    path.write_text(json.dumps(document))
    with pytest.raises(KeyFileError, match=re.escape(expected)) as caught:
        keys.read(path)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null"])
def test_a_file_of_something_else_is_damaged(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(KeyFileError, match="is damaged"):
        keys.read(path)


def test_two_keys_of_one_id_are_damage(path: Path) -> None:
    keys.create(path, ["read"])
    document = json.loads(path.read_text())
    document["keys"] *= 2
    path.write_text(json.dumps(document))
    with pytest.raises(KeyFileError, match="two keys have the same id"):
        keys.read(path)


def test_there_is_no_admin_of_one_project(path: Path) -> None:
    with pytest.raises(ValidationError, match="admin"):
        keys.create(path, ["admin"], project="p")


# The keys in force


def test_a_key_opens_its_scopes_and_what_they_imply(path: Path) -> None:
    opened: dict[Scope, set[Scope]] = {
        "evaluate": {"evaluate"},
        "read": {"read"},
        "write": {"write", "read"},
        "admin": set(SCOPES),
    }
    for scope in SCOPES:
        key, token = keys.create(path, [scope])
        access = Keyring(path).verify(token.encode())
        assert access == Access(key.id, frozenset(opened[scope]), None)


def test_a_key_of_a_project_may_use_no_other(path: Path) -> None:
    _, token = keys.create(path, ["read"], project="p")
    access = Keyring(path).verify(token.encode())
    assert (access.may_use("p"), access.may_use("q"), access.may_use("P")) == (True, False, False)


def test_a_wrong_id_and_a_wrong_secret_are_told_apart_by_nobody(path: Path) -> None:
    _, token = keys.create(path, ["read"])
    keyring = Keyring(path)
    wrong_secret = token[:-1] + ("0" if token[-1] != "0" else "1")
    wrong_id = f"rp_{'0' * 12}_{token.split('_')[2]}"
    for wrong in (wrong_secret, wrong_id, "", token + "0", token.upper(), token + "\n"):
        assert refused(keyring, wrong) == "The key is not valid."


def test_the_secret_of_one_key_does_not_open_another(path: Path) -> None:
    _, first = keys.create(path, ["read"])
    _, second = keys.create(path, ["admin"])
    mixed = f"rp_{second.split('_')[1]}_{first.split('_')[2]}"
    assert refused(Keyring(path), mixed) == "The key is not valid."


def test_a_key_expires_while_it_is_in_use(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lasts = timedelta(hours=1)
    _, token = keys.create(path, ["read"], lasts=lasts)
    keyring = Keyring(path)
    keyring.verify(token.encode())
    monkeypatch.setattr(keys, "datetime", Mock(now=lambda tz: datetime.now(tz) + lasts))
    assert refused(keyring, token) == "The key is expired."


def test_a_change_of_the_file_counts_at_once(path: Path) -> None:
    keyring = Keyring(path)
    for _ in range(20):
        key, token = keys.create(path, ["read"])
        keyring.verify(token.encode())
        keys.revoke(path, key.id)
        assert refused(keyring, token) == "The key is revoked."


def test_the_file_is_read_when_it_has_changed_and_not_else(path: Path) -> None:
    _, token = keys.create(path, ["read"])
    keyring = Keyring(path)
    with structlog.testing.capture_logs() as log:
        for _ in range(100):
            keyring.verify(token.encode())
        assert [(entry["event"], entry["active"]) for entry in log] == [("keys_read", 1)]
        keys.create(path, ["read"])
        keyring.verify(token.encode())
    assert [entry["event"] for entry in log] == ["keys_read", "keys_read"]


@pytest.mark.parametrize("spoil", [damage, lambda path: path.chmod(0o666)])
def test_while_the_file_is_damaged_the_last_good_keys_hold(
    path: Path, spoil: Callable[[Path], None]
) -> None:
    _, token = keys.create(path, ["read"])
    keyring = Keyring(path)
    keyring.verify(token.encode())
    good = path.read_text()
    spoil(path)
    with structlog.testing.capture_logs() as log:
        for _ in range(20):
            keyring.verify(token.encode())
            refused(keyring, "rp_")
    assert [entry["event"] for entry in log] == ["keys_unreadable"]
    assert "The keys of the last successful reading stay valid" in log[0]["detail"]
    path.unlink()
    path.write_text(good.replace('"keys": [', '"keys": [], "x": ['))
    keyring.verify(token.encode())
    path.write_text('{"version": 1, "keys": []}')
    assert refused(keyring, token) == "The key is not valid."


def test_a_damaged_file_lets_nobody_in_before_there_were_good_keys(path: Path) -> None:
    _, token = keys.create(path, ["read"])
    damage(path)
    assert refused(Keyring(path), token) == "The key is not valid."


def test_without_the_file_there_are_no_keys(path: Path) -> None:
    _, token = keys.create(path, ["read"])
    keyring = Keyring(path)
    keyring.verify(token.encode())
    moved = path.rename(path.with_name("moved"))
    with structlog.testing.capture_logs() as log:
        assert refused(keyring, token) == "The key is not valid."
    assert [entry["event"] for entry in log] == ["keys_missing"]
    moved.rename(path)
    keyring.verify(token.encode())


def test_a_file_that_others_may_read_is_used_with_a_warning(path: Path) -> None:
    _, token = keys.create(path, ["read"])
    path.chmod(0o440)  # as Kubernetes mounts a secret for a group
    with structlog.testing.capture_logs() as log:
        Keyring(path).verify(token.encode())
    assert [entry["event"] for entry in log] == ["keys_read"]
    path.chmod(0o644)
    with structlog.testing.capture_logs() as log:
        Keyring(path).verify(token.encode())
    assert [(entry["event"], entry["log_level"]) for entry in log] == [
        ("keys_read", "info"),
        ("keys_exposed", "warning"),
    ]
