"""The client reads and changes the history of a service."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from rprime.client.clients import Client
from rprime.client.errors import ProblemError
from tests.history_service import ServeApp, keep, keeping, matrix


@pytest.fixture
def service(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as service:
        yield service


def test_an_alias_is_set_and_moved_by_who_knows_it(service: httpx.Client) -> None:
    old, new = (keep(service, matrix(errors))["id"] for errors in (5, 3))
    with Client(str(service.base_url)) as client:
        first = client.promote("pets", "champion", old)
        assert client.alias("pets", "champion") == first
        for replaces in (None, first.model_copy(update={"etag": '"other"'})):
            with pytest.raises(ProblemError) as refused:
                client.promote("pets", "champion", new, replaces=replaces)
            assert refused.value.code == "precondition_failed"
        assert client.promote("pets", "champion", new, replaces=first).evaluation == new
        assert [alias.evaluation for alias in client.aliases("pets").items] == [new]
        assert [project.name for project in client.projects().items] == ["pets"]
