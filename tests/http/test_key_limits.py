"""How often a key may be used, over real connections."""

from pathlib import Path

import pytest

from rprime.app import create_app
from rprime.auth import keys
from rprime.auth.keys import RequestLimits
from rprime.settings import Settings
from tests.history_service import ServeApp

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
