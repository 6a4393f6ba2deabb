"""The files for nginx and Caddy, before a real service, with TLS."""

import re
import shutil
import socket
import ssl
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest
import yaml

from tests.examples.recipes import EXAMPLES, missing, run
from tests.http.column_bodies import as_npz
from tests.services import Serve
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

NAME = "rprime.example.org"
JSON_BYTES = 500_000
TABLE = {"confusion_matrix": [[40, 2], [3, 55]]}


@dataclass(frozen=True)
class Place:
    """Where a proxy runs: its folder, with a certificate, and its ports."""

    folder: Path
    upstream: str
    http: int
    https: int

    @property
    def certificate(self) -> Path:
        return self.folder / "certificate.pem"

    @property
    def key(self) -> Path:
        return self.folder / "key.pem"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def program(name: str) -> str:
    # Debian keeps nginx where only root looks.
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    return path or missing(f"the file of {name}: there is no {name}, see .ci/programs")


def of_nginx(place: Place) -> list[str]:
    """Write the configuration of nginx with other paths, ports and limit; return its command."""
    site = (EXAMPLES / "nginx" / "rprime.conf").read_text()
    changes = {
        "/etc/ssl/rprime.example.org.pem": str(place.certificate),
        "/etc/ssl/private/rprime.example.org.key": str(place.key),
        "127.0.0.1:8000": place.upstream,
        "listen 80;": f"listen 127.0.0.1:{place.http};",
        "listen 443 ssl;": f"listen 127.0.0.1:{place.https} ssl;",
    }
    return nginx_command(place.folder, replaced(site, changes))


def nginx_command(folder: Path, site: str) -> list[str]:
    (folder / "site.conf").write_text(site)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/log; worker_processes 1;\n"
        "events {}\n"
        f"http {{ access_log off; {temporary} include {folder}/site.conf; }}\n"
    )
    folder.chmod(0o755)
    return [program("nginx"), "-e", f"{folder}/log", "-c", f"{folder}/nginx.conf"]


def of_caddy(place: Place) -> list[str]:
    """Write the configuration of Caddy with other ports; return its command."""
    site = (EXAMPLES / "caddy" / "Caddyfile").read_text()
    directive = f"\ttls {place.certificate} {place.key}\n"
    changes = {
        f"\n{NAME} {{\n": f"\n{NAME}:{place.https} {{\n{directive}",
        "127.0.0.1:8000": place.upstream,
    }
    options = f"{{\n\tadmin off\n\thttp_port {place.http}\n\tdefault_bind 127.0.0.1\n}}\n"
    (place.folder / "Caddyfile").write_text(options + replaced(site, changes))
    return [program("caddy"), "run", "--config", f"{place.folder}/Caddyfile"]


def replaced(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


PROXIES = {"nginx": of_nginx, "caddy": of_caddy}


@contextmanager
def proxy(kind: str, place: Place) -> Iterator[httpx.Client]:
    """Run a proxy, and return a client that trusts its certificate and takes it for the host."""
    subject = ("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}")
    files = ("-keyout", place.key, "-out", place.certificate)
    made = run(
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-nodes", "-days", "2", *subject, *files),
        cwd=place.folder,
    )
    assert made.returncode == 0, made.stderr
    variables = {"HOME": str(place.folder), "XDG_DATA_HOME": str(place.folder)}
    with (place.folder / "stderr").open("w") as log:
        process = subprocess.Popen(PROXIES[kind](place), env=variables, stderr=log)
        try:
            wait_until(lambda: listens(place.https) or process.poll() is not None)
            assert process.poll() is None, (place.folder / "stderr").read_text()
            trust = ssl.create_default_context(cafile=str(place.certificate))
            url = f"https://127.0.0.1:{place.https}"
            with httpx.Client(
                base_url=url, timeout=60, verify=trust, headers={"Host": NAME}
            ) as client:
                client.event_hooks["request"] = [name_the_server]
                yield client
        finally:
            process.terminate()
            process.wait(30)


def name_the_server(request: httpx.Request) -> None:
    request.extensions["sni_hostname"] = NAME


def listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@dataclass(frozen=True)
class Setup:
    """A proxy before a service with keys."""

    client: httpx.Client
    place: Place
    key: str


@pytest.fixture(scope="module", params=PROXIES)
def setup(
    request: pytest.FixtureRequest, serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Setup]:
    folder = tmp_path_factory.mktemp("proxy")
    keys = {"RPRIME_KEYS_FILE": str(folder / "keys.json")}
    made = run("rprime", "keys", "create", "--scope", "admin", cwd=folder, variables=keys)
    [key] = re.findall(r"rp_\w+", made.stdout)
    limits = {
        "RPRIME_LIMITS_JSON_BODY_BYTES": str(JSON_BYTES),
        "RPRIME_LIMITS_OTHER_BODY_BYTES": str(16 * 1024 * 1024),
    }
    with serve(**keys, **limits, RPRIME_HOSTS=NAME) as service:
        upstream = f"127.0.0.1:{service.base_url.port}"
        place = Place(folder, upstream, free_port(), free_port())
        with proxy(request.param, place) as client:
            client.headers["Authorization"] = f"Bearer {key}"
            yield Setup(client, place, key)


def test_a_request_gets_its_report(setup: Setup) -> None:
    answer = setup.client.post("/evaluate", json=TABLE)
    assert answer.status_code == 200
    assert answer.json()["counts"]["items"] == 100
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_a_request_without_a_key_is_refused(setup: Setup) -> None:
    answer = setup.client.post("/evaluate", json=TABLE, headers={"Authorization": ""})
    assert answer.status_code == 401
    assert answer.json()["code"]


def test_probes_pass_and_metrics_stay_inside(setup: Setup) -> None:
    assert setup.client.get("/livez").status_code == 200
    assert setup.client.get("/readyz").status_code == 200
    assert setup.client.get("/metrics").status_code == 404
    # The service itself answers whoever has the key.
    inside = f"http://{setup.place.upstream}/metrics"
    headers = {"Authorization": f"Bearer {setup.key}", "Host": NAME}
    assert httpx.get(inside, headers=headers).status_code == 200


def test_a_large_body_goes_through_in_pieces(setup: Setup) -> None:
    items = np.arange(4_000_000) % 7
    body = as_npz({"y_true": items.astype(np.uint8), "y_pred": items.astype(np.uint8)[::-1]})
    headers = {"Content-Type": "application/x-npz"}
    answer = setup.client.post(
        "/evaluate", content=iter([body[:1000], body[1000:]]), headers=headers
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["counts"]["items"] == 4_000_000


def test_the_limit_of_the_service_is_told_by_the_service(setup: Setup) -> None:
    body = b'{"y_true": [' + b"1, " * JSON_BYTES + b"1]}"
    answer = setup.client.post(
        "/evaluate", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"


def test_what_is_larger_than_any_limit_is_refused_by_the_service(setup: Setup) -> None:
    headers = {"Content-Type": "application/x-npz"}
    answer = setup.client.post("/evaluate", content=bytes(20 * 1024 * 1024), headers=headers)
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"


def test_plain_http_leads_to_https(setup: Setup) -> None:
    answer = httpx.get(f"http://127.0.0.1:{setup.place.http}/docs", headers={"Host": NAME})
    assert answer.status_code in {301, 308}
    assert re.fullmatch(rf"https://{NAME}(:{setup.place.https})?/docs", answer.headers["location"])


def test_a_session_is_for_https_alone(setup: Setup) -> None:
    origin = {"Origin": f"https://{NAME}", "Authorization": ""}
    page = setup.client.get("/ui/sign-in", headers=origin)
    fields = dict(re.findall(r'name="(\w+)"[^>]* value="([^"]*)"', page.text))
    answer = setup.client.post(
        "/ui/sign-in", data=fields | {"key": setup.key}, headers=origin, follow_redirects=False
    )
    assert answer.status_code == 303, answer.text
    assert "secure" in answer.headers["set-cookie"].lower()


def test_another_name_is_refused(setup: Setup) -> None:
    """RPRIME_HOSTS holds behind the proxy, which passes the name on."""
    answer = setup.client.get("/docs", headers={"Host": "evil.example"})
    assert answer.status_code in {200, 400, 421}
    if answer.status_code == 200:
        assert answer.text == ""  # Caddy knows no such site, and answers nothing


def test_nginx_limits_the_requests_and_the_connections_of_an_address(setup: Setup) -> None:
    """Caddy cannot by itself: its file bounds the connections to the service."""
    if (setup.place.folder / "Caddyfile").exists():
        assert "max_conns_per_host 256" in (setup.place.folder / "Caddyfile").read_text()
        return
    trust = ssl.create_default_context(cafile=str(setup.place.certificate))
    address = ("127.0.0.1", setup.place.https)
    head = f"POST /v1/evaluate HTTP/1.1\r\nHost: {NAME}\r\nAuthorization: Bearer {setup.key}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(50):
            plain = socket.create_connection(address)
            secure = stack.enter_context(trust.wrap_socket(plain, server_hostname=NAME))
            # A connection counts from its head to its answer.
            secure.sendall(head.encode())
        wait_until(lambda: setup.client.get("/livez").status_code == 429)
    wait_until(lambda: setup.client.get("/livez").status_code == 200)
    statuses = Counter(setup.client.get("/livez").status_code for _ in range(500))
    assert set(statuses) == {200, 429}
    wait_until(lambda: setup.client.get("/livez").status_code == 200)


def test_the_compose_file_has_a_proxy_that_nginx_takes(tmp_path: Path) -> None:
    """The version of nginx in Debian has no `resolve`, which the image of the compose file has."""
    compose = yaml.safe_load((EXAMPLES / "compose" / "docker-compose.yml").read_text())
    site = compose["configs"]["proxy"]["content"].replace("$$", "$")
    changes = {"    resolver 127.0.0.11 valid=10s;\n": "", "replica:8000 resolve": "127.0.0.1:8000"}
    done = run(*nginx_command(tmp_path, replaced(site, changes)), "-t", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
