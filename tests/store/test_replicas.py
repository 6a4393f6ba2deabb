"""Two services on one PostgreSQL are one to whoever asks, and the compose file starts them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from conftest import Serve

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
TABLE = {"confusion_matrix": [[9, 1], [2, 8]], "project": "shop"}


def test_what_one_replica_keeps_the_other_reads(serve: Serve, postgresql_url: str) -> None:
    with (
        serve(RPRIME_STORE=postgresql_url) as one,
        serve(RPRIME_STORE=postgresql_url) as other,
    ):
        key = {"Idempotency-Key": "the same run"}
        kept = one.post("/evaluate", json=TABLE, headers=key)
        assert kept.status_code == 201
        again = other.post("/evaluate", json=TABLE, headers=key)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.content == kept.content
        read = other.get(f"/v1/evaluations/{kept.json()['id']}")
        assert read.json()["overall"] == kept.json()["overall"]
        compared = {**TABLE, "baseline": {"evaluation": kept.json()["id"]}}
        assert other.post("/evaluate", json=compared).json()["comparison"]["overall"]


def test_the_compose_file_is_valid() -> None:
    checker = Path(sys.executable).with_name("check-jsonschema")
    schema = ("--builtin-schema", "vendor.compose-spec")
    done = subprocess.run(
        [checker, *schema, ROOT / "docker-compose.yml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_only_the_service_with_sqlite_starts_unasked() -> None:
    services = COMPOSE["services"]
    assert [name for name, one in services.items() if "profiles" not in one] == ["api"]
    assert services["replica"]["deploy"]["replicas"] == 2
    assert "ports" not in services["replica"]


def test_every_container_is_hardened() -> None:
    for name, one in COMPOSE["services"].items():
        assert one["read_only"], name
        assert one["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in one["security_opt"], name
        assert all(port.startswith("127.0.0.1:") for port in one.get("ports", ())), name
