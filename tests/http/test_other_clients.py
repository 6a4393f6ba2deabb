"""Clients that offer another protocol, close their side early, or do both, get their answers."""

import json
import shutil
import socket
from pathlib import Path

import httpx
import pytest

from tests.examples.recipes import missing, run
from tests.waiting import gauge, wait_until

BODY = '{"confusion_matrix":[[5,1],[2,7]]}'
JAVA = """
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

class Post {
    public static void main(String[] given) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        for (int time = 0; time < 3; time++) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(given[0]))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(given[1]))
                .build();
            var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(answer.statusCode() + " " + answer.body().contains("accuracy"));
        }
    }
}
"""


def program(name: str) -> str:
    return shutil.which(name) or missing(f"a client: there is no {name}, see .ci/programs")


@pytest.mark.slow
def test_the_default_client_of_java_posts(client: httpx.Client, tmp_path: Path) -> None:
    """It offers h2c with each request over http."""
    java = program("java")
    (tmp_path / "Post.java").write_text(JAVA)
    url = str(client.base_url.join("/v1/evaluate"))
    done = run(java, "-Xmx64m", "Post.java", url, BODY, cwd=tmp_path)
    assert (done.stdout.splitlines(), done.stderr) == (3 * ["200 true"], "")


def test_curl_offers_http_2_and_posts(client: httpx.Client, tmp_path: Path) -> None:
    curl, url = program("curl"), str(client.base_url.join("/v1/evaluate"))
    fields = ("-H", "Content-Type: application/json", "-d", BODY)
    done = run(curl, "--http2", "-sS", "-w", "\n%{http_code}", *fields, url, cwd=tmp_path)
    content, _, status = done.stdout.rpartition("\n")
    assert (status, '"accuracy"' in content) == ("200", True)


def answer_of_half_closed(client: httpx.Client, request: bytes) -> bytes:
    """Send a request, close this side, and return all that comes."""
    address = client.base_url.host, client.base_url.port or 0
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("expects", [b"", b"Expect: 100-continue\r\n"])
def test_a_client_that_closes_its_side_gets_its_answer_and_nothing_else(
    client: httpx.Client, version: bytes, expects: bytes
) -> None:
    labels = ["cat", "dog"] * 200_000
    body = json.dumps({"y_true": labels, "y_pred": labels}).encode()
    assert len(body) > 1 << 20
    head = b"POST /evaluate HTTP/%b\r\nHost: localhost\r\n%b" % (version, expects)
    head += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    answer = answer_of_half_closed(client, head + body)
    if version == b"1.1":
        # What the client asked for, of which the server cannot know that it did not wait.
        answer = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n" if expects else b"")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.count(b"HTTP/1.1 ") == 1
    head, _, content = answer.partition(b"\r\n\r\n")
    assert json.loads(content)["overall"]["accuracy"]["value"] == 1


def test_a_websocket_handshake_on_post_is_answered_as_a_post(client: httpx.Client) -> None:
    offer = (
        b"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
        b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nContent-Type: application/json\r\n"
    )
    request = offer + b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY.encode())
    answer = answer_of_half_closed(client, request)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b'"accuracy"' in answer


def test_work_stops_when_a_client_that_has_closed_its_side_goes(client: httpx.Client) -> None:
    """Its system refuses the next byte."""
    rules = [
        {"id": f"r{i}", "index": "recall", "classes": "all", "max_drop": 0.01 + i / 1e4}
        for i in range(30)
    ]
    body = json.dumps({"confusion_matrix": [[60, 7], [8, 70]], "gates": {"rules": rules}}).encode()
    head = b"POST /v1/gates/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    address = client.base_url.host, client.base_url.port or 0
    running = 'rprime_pool_requests{pool="workers"}'
    with socket.create_connection(address) as connection:
        connection.sendall(head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        connection.shutdown(socket.SHUT_WR)
        wait_until(lambda: gauge(client, running) == 1)
    wait_until(lambda: gauge(client, running) == 0, seconds=5)
