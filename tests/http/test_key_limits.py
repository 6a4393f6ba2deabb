"""How often a key may be used, over real connections."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from rprime.app import create_app
from rprime.auth import keys
from rprime.auth.keys import WRONG_KEYS_PER_MINUTE, RequestLimits
from rprime.settings import Settings
from tests.history_service import ServeApp
from tests.waiting import wait_until

PATH = "/v1/indices"


def test_a_key_that_is_used_too_often_has_to_wait(serve_app: ServeApp, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    headers, others = (
        {"Authorization": f"Bearer {keys.create(path, ['read'])[1]}"} for _ in range(2)
    )
    settings = Settings(keys_file=path, store="none", key_requests_per_minute=3)
    with serve_app(create_app(settings)) as client:
        answers = [client.get(PATH, headers=headers) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert answers[-1].json()["code"] == "too_many_requests"
        assert 0 < int(answers[-1].headers["retry-after"]) <= 20
        assert client.get(PATH, headers=others).status_code == 200
        assert client.get(PATH).status_code == 401
        assert client.get("/livez", headers=headers).status_code == 200


def test_a_bucket_refills_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(keys, "monotonic", lambda: now)
    limits = RequestLimits(60)
    assert [limits.take("k") for _ in range(60)] == [0.0] * 60
    assert limits.take("k") == pytest.approx(1)
    assert limits.take("other") == 0
    now += 0.5
    assert limits.take("k") == pytest.approx(0.5)
    now += 0.5
    assert limits.take("k") == 0
    assert limits.take("k") == pytest.approx(1)
    now += 3600
    assert sum(limits.take("k") == 0 for _ in range(100)) == 60
    assert RequestLimits(None).take("k") == 0


def wrong(secret: str, key_id: str = "0" * 12) -> dict[str, str]:
    return {"Authorization": f"Bearer rp_{key_id}_{secret:0>48}"}


@pytest.fixture
def guarded(serve_app: ServeApp, tmp_path: Path) -> Iterator[tuple[httpx.Client, list[str]]]:
    """Yield a service with two keys, and the keys."""
    path = tmp_path / "keys.json"
    tokens = [keys.create(path, ["read"])[1] for _ in range(2)]
    with serve_app(create_app(Settings(keys_file=path, store="none"))) as client:
        yield client, tokens


def test_wrong_keys_of_an_address_have_to_wait_and_right_ones_have_not(
    guarded: tuple[httpx.Client, list[str]],
) -> None:
    client, tokens = guarded
    answers = [client.get(PATH, headers=wrong("0", f"{i:012x}")) for i in range(60)]
    statuses = [answer.status_code for answer in answers]
    assert statuses[:WRONG_KEYS_PER_MINUTE] == [401] * WRONG_KEYS_PER_MINUTE
    assert statuses.count(429) > 20
    last = next(answer for answer in reversed(answers) if answer.status_code == 429)
    assert (last.json()["code"], last.headers["retry-after"]) == ("too_many_requests", "2")
    for token in tokens:
        assert client.get(PATH, headers={"Authorization": f"Bearer {token}"}).status_code == 200
    assert client.get(PATH).status_code == 401


def test_wrong_secrets_of_one_key_stop_that_key_only(
    guarded: tuple[httpx.Client, list[str]],
) -> None:
    client, (tried, other) = guarded
    key_id = tried.split("_")[1]
    for secret in range(WRONG_KEYS_PER_MINUTE):
        client.get(PATH, headers=wrong(f"{secret:x}", key_id))
    statuses = {
        client.get(PATH, headers={"Authorization": f"Bearer {tried}"}).status_code for _ in range(3)
    }
    assert 429 in statuses
    assert client.get(PATH, headers={"Authorization": f"Bearer {other}"}).status_code == 200

    def opens() -> bool:
        answer = client.get(PATH, headers={"Authorization": f"Bearer {tried}"})
        return answer.status_code == 200

    wait_until(opens, seconds=5)


def test_wrong_keys_at_the_sign_in_have_to_wait(guarded: tuple[httpx.Client, list[str]]) -> None:
    client, tokens = guarded
    page = client.get("/ui/sign-in").text
    match = re.search(r'name="csrf_token" value="([^"]+)"', page)
    assert match is not None
    form = {"csrf_token": match[1]}
    answers = [client.post("/ui/sign-in", data=form | {"key": "wrong"}) for _ in range(60)]
    assert answers[0].status_code == 403
    assert answers[-1].status_code == 429
    assert answers[-1].headers["retry-after"] == "2"
    assert "Too many wrong keys" in answers[-1].text
    assert client.post("/ui/sign-in", data=form | {"key": tokens[0]}).status_code == 303


def test_addresses_that_are_counted_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(keys, "monotonic", lambda: now)
    limits = RequestLimits(30)
    assert [limits.take("attacker") for _ in range(31)][-1] > 0
    for number in range(100_000):
        limits.take(number)
    assert len(limits._full_at) <= 10_000  # noqa: SLF001 (what must not grow)
    assert limits.early("attacker") > 0
