"""Write the digest of each image behind its tag: see `.ci/pin-images`."""

# ruff: noqa: INP001, S310, T201 - a program; it opens addresses of registries, and tells what it did

import json
import re
import sys
from email.message import Message
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

ROOT = Path(__file__).parents[2]
FILES = ("Dockerfile", "docker-compose.yml", "examples/compose/docker-compose.yml")
# An image with the name of its registry, in an argument of a Dockerfile or in a compose file.
REFERENCE = re.compile(
    r"^(?P<before>ARG \w+_IMAGE=|\s*image: )"
    r"(?P<host>localhost|[\w-]*[.:][\w.:-]*)/(?P<name>[\w./-]+):(?P<tag>[\w.-]+)"
    r"(?:@sha256:[0-9a-f]{64})?$",
    re.MULTILINE,
)
# The registry of Docker has another name than its images.
ADDRESSES = {"docker.io": "registry-1.docker.io"}
LOCAL = ("localhost", "127.0.0.1")
# Of several platforms first, so that the digest holds for all of them.
MEDIA_TYPES = (
    "application/vnd.oci.image.index.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)
SECONDS = 30


class RegistryError(Exception):
    """A registry does not answer as it has to."""


def main(paths: list[Path]) -> int:
    """Pin the images of files, or change none of them if one digest cannot be had."""
    try:
        changed = {path: pinned(path.read_text(encoding="utf-8")) for path in paths}
    except (RegistryError, OSError, ValueError, LookupError) as exc:
        print(f"pin-images: {exc}; nothing is changed", file=sys.stderr)
        return 1
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")
    return 0


def pinned(text: str) -> str:
    """Return a text in which every image has its digest."""

    def with_digest(found: re.Match[str]) -> str:
        host, name, tag = found["host"], found["name"], found["tag"]
        reference = f"{host}/{name}:{tag}@{digest(host, name, tag)}"
        print(reference)
        return found["before"] + reference

    return REFERENCE.sub(with_digest, text)


@cache
def digest(host: str, name: str, tag: str) -> str:
    """Ask a registry for the manifest behind a tag, and return the digest of what it sent."""
    scheme = "http" if host.partition(":")[0] in LOCAL else "https"
    url = f"{scheme}://{ADDRESSES.get(host, host)}/v2/{name}/manifests/{tag}"
    try:
        body, headers = manifest(url)
    except HTTPError as exc:
        raise RegistryError(f"{url}: {exc.code} {exc.reason}") from exc
    found = f"sha256:{sha256(body).hexdigest()}"
    if headers.get("Docker-Content-Digest", found) != found:
        raise RegistryError(f"{url}: the manifest has not the digest that the registry names")
    return found


def manifest(url: str) -> tuple[bytes, Message]:
    """Return a manifest and the headers that came with it; get a token if one is needed."""
    try:
        return got(url, {"Accept": MEDIA_TYPES})
    except HTTPError as exc:
        challenge = exc.headers.get("WWW-Authenticate", "")
        if exc.code != HTTPStatus.UNAUTHORIZED or not challenge.startswith("Bearer "):
            raise
    wanted = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    body, _ = got(f"{wanted.pop('realm')}?{urlencode(wanted)}", {})
    answer = json.loads(body)
    token = answer.get("token") or answer["access_token"]
    return got(url, {"Accept": MEDIA_TYPES, "Authorization": f"Bearer {token}"})


def got(url: str, headers: dict[str, str]) -> tuple[bytes, Message]:
    """Return the body and the headers of an answer."""
    with urlopen(Request(url, headers=headers), timeout=SECONDS) as answer:
        return answer.read(), answer.headers


if __name__ == "__main__":
    sys.exit(main([Path(path) for path in sys.argv[1:]] or [ROOT / name for name in FILES]))
