"""What Kubernetes says of the kinds of the manifest, cut from its API: no other member is allowed.

`python -m tests.examples.kubernetes_schemas _definitions.json` prints the cut; the file is in the
package kubernetes-validate, in its folder `v1.37.0-local-strict`.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema

Json = Any
KUBERNETES = Path(__file__).parents[1] / "reference" / "kubernetes.json"
KINDS = {
    "Deployment": "io.k8s.api.apps.v1.Deployment",
    "NetworkPolicy": "io.k8s.api.networking.v1.NetworkPolicy",
    "PodDisruptionBudget": "io.k8s.api.policy.v1.PodDisruptionBudget",
    "Service": "io.k8s.api.core.v1.Service",
}
_PLACE = "#/$defs/"


def cut(document: Json) -> Json:
    """Take the kinds and what they refer to, without words and without the status."""
    taken: dict[str, Json] = {}
    missing = list(KINDS.values())
    while missing:
        name = missing.pop()
        if name not in taken:
            taken[name] = _without_words(document["$defs"][name])
            missing += _references(taken[name])
    return {"$schema": document["$schema"], "$defs": dict(sorted(taken.items()))}


def _without_words(node: Json) -> Json:
    if isinstance(node, list):
        return [_without_words(each) for each in node]
    if not isinstance(node, dict):
        return node
    members = {}
    for name, value in node.items():
        if name == "properties":
            # A property may be called like a word of the schema.
            schemas = {each: _without_words(schema) for each, schema in value.items()}
            members[name] = {each: schemas[each] for each in schemas if each != "status"}
        elif name != "description" and not name.startswith("x-"):
            members[name] = _without_words(value)
    return members


def _references(node: Json) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _references(each)
    elif isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(_PLACE)
        for each in node.values():
            yield from _references(each)


def mistakes(document: Json) -> list[str]:
    """Say what the API of Kubernetes would refuse in a document of a manifest."""
    root = json.loads(KUBERNETES.read_text(encoding="utf-8"))
    checker = jsonschema.Draft202012Validator({"$ref": _PLACE + KINDS[document["kind"]], **root})
    return [f"{error.json_path}: {error.message}" for error in checker.iter_errors(document)]


if __name__ == "__main__":
    definitions = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.stdout.write(json.dumps(cut(definitions), separators=(",", ":")) + "\n")
