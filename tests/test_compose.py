"""The compose file: which services it starts, and how they are confined."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())


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
