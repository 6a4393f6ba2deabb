"""Print what an environment has, as CycloneDX 1.6: `/opt/rprime/bin/python sbom.py rprime`.

Run it by the Python of that environment. The names are those of Package URLs (purl), by which
scanners find vulnerabilities. Debian packages of the image are not in it: scanners read dpkg.
"""

# ruff: noqa: INP001 - a program of the build, in no package

import json
import platform
import re
import sys
from importlib.metadata import Distribution, distribution, distributions
from typing import Any

Json = dict[str, Any]


def main(root: str) -> None:
    """Print the bill of materials of a distribution and of all others beside it."""
    found = {name_of(one): one for one in distributions()}
    urls = {name: _purl(one) for name, one in found.items()}
    listed = [dependencies(found[name], urls) for name in sorted(found)]
    top = found.pop(name_of(distribution(root)))
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(top) | {"type": "application"}},
        "components": [_interpreter(), *(component(found[name]) for name in sorted(found))],
        "dependencies": listed,
    }
    json.dump(bill, sys.stdout, indent=1)
    sys.stdout.write("\n")


def name_of(one: Distribution) -> str:
    """Return the normalized name of a distribution."""
    return normalized(one.metadata["Name"])


def normalized(name: str) -> str:
    """Return a name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def component(one: Distribution) -> Json:
    """Describe a distribution: name, version, licence and Package URL."""
    url = _purl(one)
    described = {
        "type": "library",
        "bom-ref": url,
        "name": one.metadata["Name"],
        "version": one.version,
        "purl": url,
    }
    return described | _licence(one)


def _purl(one: Distribution) -> str:
    return f"pkg:pypi/{name_of(one)}@{one.version}"


def _licence(one: Distribution) -> Json:
    """Return the licence: an SPDX expression, or else a short name."""
    [expression] = one.metadata.get_all("License-Expression") or [None]
    if expression:
        return {"licenses": [{"expression": expression}]}
    names = [
        line.rpartition(" :: ")[2]
        for line in one.metadata.get_all("Classifier") or ()
        if line.startswith("License :: ")
    ]
    if not names:
        names = [text for text in one.metadata.get_all("License") or () if "\n" not in text]
    return {"licenses": [{"license": {"name": name}} for name in names]} if names else {}


def _interpreter() -> Json:
    version = platform.python_version()
    url = f"pkg:generic/python@{version}"
    return {"type": "platform", "bom-ref": url, "name": "Python", "version": version, "purl": url}


def dependencies(one: Distribution, urls: dict[str, str]) -> Json:
    """List what a distribution requires, with or without an extra, of what is there."""
    names = (normalized(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in one.requires or ())
    return {"ref": _purl(one), "dependsOn": sorted({urls[name] for name in names if name in urls})}


if __name__ == "__main__":
    main(sys.argv[1])
