"""What GitHub publishes about the requests of the comments, cut from its OpenAPI document.

`python -m tests.examples.forge_schemas api.github.com.json` prints the cut; the document is in the
npm package @octokit/openapi.
"""

import json
import sys
from pathlib import Path
from typing import Any

Json = Any
GITHUB = Path(__file__).parents[1] / "reference" / "github-comments.json"
GITLAB = Path(__file__).parents[1] / "reference" / "gitlab-notes.json"
OPERATIONS = {
    "/user": ["get"],
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": ["get", "post"],
    "/repos/{owner}/{repo}/issues/comments/{comment_id}": ["patch"],
}
WORDS = {
    "description",
    "summary",
    "tags",
    "externalDocs",
    "example",
    "examples",
    "operationId",
    "discriminator",
    "title",
}


def cut(document: Json) -> Json:
    """Take the operations that are asked for, and what they refer to, without words."""
    taken: Json = {"paths": {}, "components": {}}
    for path, methods in OPERATIONS.items():
        taken["paths"][path] = {
            method: _spoken_of(document["paths"][path][method]) for method in methods
        }
    while missing := [place for place in _references(taken) if _at(taken, place) is None]:
        for place in missing:
            *outer, name = place
            inner = taken
            for part in outer:
                inner = inner.setdefault(part, {})
            inner[name] = _spoken_of(_at(document, place))
    return taken


def _spoken_of(node: Json) -> Json:
    """Leave out what only explains: but a property may be called like one of these words."""
    if isinstance(node, list):
        return [_spoken_of(each) for each in node]
    if not isinstance(node, dict):
        return node
    members = {}
    for name, value in node.items():
        if name == "properties":
            members[name] = {each: _spoken_of(schema) for each, schema in value.items()}
        elif name not in WORDS and not name.startswith("x-"):
            members[name] = _spoken_of(value)
    return members


def _references(node: Json) -> list[list[str]]:
    if isinstance(node, list):
        return [place for each in node for place in _references(each)]
    if not isinstance(node, dict):
        return []
    reference = node.get("$ref")
    places = [reference.removeprefix("#/").split("/")] if isinstance(reference, str) else []
    return places + [place for each in node.values() for place in _references(each)]


def _at(document: Json, place: list[str]) -> Json:
    for part in place:
        document = document.get(part) if isinstance(document, dict) else None
    return document


if __name__ == "__main__":
    document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.stdout.write(json.dumps(cut(document)) + "\n")
