"""The compose files: which services they start, who reaches them, and how they are confined."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from rprime.settings import Settings
from tests.examples.recipes import PROGRAMS, run

ROOT = Path(__file__).parents[1]
SCALE = ROOT / "examples" / "compose"
FILES = {"local": ROOT / "docker-compose.yml", "scale": SCALE / "docker-compose.yml"}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}
COMPOSE: dict[str, Any] = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
SERVICES = [
    pytest.param(service, id=f"{file}-{name}")
    for file, content in COMPOSE.items()
    for name, service in content["services"].items()
]
each_file = pytest.mark.parametrize("file", FILES)
each_service = pytest.mark.parametrize("one", SERVICES)


@each_file
def test_it_is_valid_by_the_published_schema(file: str) -> None:
    schema = ("--builtin-schema", "vendor.compose-spec")
    done = run(PROGRAMS / "check-jsonschema", *schema, FILES[file], cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_the_first_start_needs_nothing() -> None:
    """Compose fills in the variables of all services, also of those that are not started."""
    assert list(COMPOSE["local"]["services"]) == ["api"]
    assert "${" not in TEXTS["local"]


@each_service
def test_every_container_is_hardened(one: dict[str, Any]) -> None:
    assert one["read_only"]
    assert one["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in one["security_opt"]
    assert re.fullmatch(r"\d+m", one["mem_limit"])


@each_service
def test_every_port_is_for_this_machine_alone(one: dict[str, Any]) -> None:
    assert all(port.startswith("127.0.0.1:") for port in one.get("ports", ()))


@each_service
def test_a_service_without_keys_has_only_ports_of_this_machine_and_no_neighbour(
    one: dict[str, Any],
) -> None:
    environment = one.get("environment", {})
    if environment.get("RPRIME_INSECURE") == "1":
        assert one == COMPOSE["local"]["services"]["api"]
        assert one["ports"]
        # Else a page whose name is resolved to this machine reads the history.
        assert "*" not in environment["RPRIME_HOSTS"]
    elif "RPRIME_HOST" in environment:
        assert environment["RPRIME_KEYS_FILE"]


def test_the_proxy_does_what_a_proxy_must() -> None:
    site = COMPOSE["scale"]["configs"]["proxy"]["content"]
    assert "X-Forwarded-For $$remote_addr;" in site
    assert "X-Forwarded-Proto $$scheme;" in site
    assert "proxy_read_timeout 90s;" in site
    assert "location = /metrics" in site
    assert {"limit_req_zone", "limit_conn_zone", "limit_req", "limit_conn"} <= set(site.split())
    assert {"RPRIME_HOSTS", "RPRIME_TRUSTED_PROXIES"} <= set(
        COMPOSE["scale"]["services"]["replica"]["environment"]
    )


@each_service
def test_every_setting_exists(one: dict[str, Any]) -> None:
    names = {name for name in one.get("environment", {}) if name.startswith("RPRIME_")}
    assert names <= {f"RPRIME_{field.upper()}" for field in Settings.model_fields}


def test_no_password_has_a_default() -> None:
    """Every secret is a variable, and Compose stops with a message where it is not set."""
    used = re.findall(r"\$\{([^}]*)\}", TEXTS["scale"])
    assert {use.partition(":")[0] for use in used} == {"POSTGRES_PASSWORD", "RPRIME_SESSION_SECRET"}
    assert {use.partition(":")[2] for use in used} == {"?run secrets.sh first"}
    secrets = re.findall(r"(?:PASSWORD|SECRET)\w*: *(.*)|//rprime:(.*)@", TEXTS["scale"])
    assert len(secrets) == 3
    assert all(re.fullmatch(r'"?\$\{.*\}"?', first or second) for first, second in secrets)


def test_the_script_writes_other_secrets_each_time_and_replaces_none(tmp_path: Path) -> None:
    made = []
    for folder in (tmp_path / "one", tmp_path / "other"):
        folder.mkdir()
        script = shutil.copy(SCALE / "secrets.sh", folder)
        assert run("sh", script, cwd=folder).returncode == 0
        path = folder / ".env"
        assert path.stat().st_mode & 0o777 == 0o600
        lines = dict(line.split("=") for line in path.read_text().splitlines())
        assert set(lines) == {"POSTGRES_PASSWORD", "RPRIME_SESSION_SECRET"}
        made += list(lines.values())
        assert run("sh", script, cwd=folder).returncode == 1
        assert dict(line.split("=") for line in path.read_text().splitlines()) == lines
    assert len(set(made)) == 4
    assert all(re.fullmatch("[0-9a-f]{64}", secret) for secret in made)


def test_the_secrets_stay_out_of_the_repository_and_of_the_image() -> None:
    assert (SCALE / ".gitignore").read_text().split() == [".env"]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    assert not [line for line in ignored if line.startswith("!examples")]
