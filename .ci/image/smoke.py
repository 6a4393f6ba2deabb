"""Start the service of an environment and ask for everything once: `python smoke.py rprime`.

Run it by the Python of that environment. It ends with 0 if every body format gives the same report,
and stored evaluations, figures and pages are there.
"""

# ruff: noqa: INP001, S101, S603 - a program of the build; its assertions are its result

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

TRUE = np.arange(3000) % 3
PREDICTED = np.where(np.arange(3000) % 7, TRUE, (TRUE + 1) % 3)


def main(program: str) -> None:
    """Start the service, ask it, and stop it."""
    with tempfile.TemporaryDirectory() as folder:
        given = {"RPRIME_STORE": f"sqlite:///{folder}/smoke.db", "RPRIME_DRAIN_SECONDS": "0"}
        service = subprocess.Popen(
            [program, "serve", "--port", "0"],
            env={"HOME": folder, "MPLCONFIGDIR": folder, "PATH": os.environ["PATH"], **given},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            with httpx.Client(base_url=_address(service), timeout=60) as client:
                ask(client)
        finally:
            service.terminate()
            status = service.wait(30)
    assert status == 0, status


def ask(client: httpx.Client) -> None:
    """Ask a service for everything once."""
    items = {"y_true": TRUE.tolist(), "y_pred": PREDICTED.tolist()}
    expected = _good(client.post("/evaluate", json=items)).json()
    assert expected["counts"]["items"] == TRUE.size
    for media_type, body in bodies():
        found = _good(client.post("/evaluate", content=body, headers={"Content-Type": media_type}))
        assert found.json() == expected, media_type
    gates = {
        "rules": [{"index": "accuracy", "max_drop": 0.1}, {"index": "kappa", "min_value": 0.5}]
    }
    stored = items | {"project": "smoke", "model": "m", "baseline": items, "gates": gates}
    answer = _good(client.post("/evaluate", json=stored)).json()
    assert answer["gate"]["verdict"] == "pass"
    place = f"/v1/evaluations/{answer['id']}"
    for form, begins in {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF-"}.items():
        for name in ("confusion", "radar", "per_class"):
            figure = _good(client.get(f"{place}/figures/{name}.{form}"))
            assert figure.content.startswith(begins), (name, form)
    trend = _good(client.get("/v1/projects/smoke/figures/trend.svg?index=kappa"))
    assert trend.content.startswith(b"<svg")
    pages = ("/ui/evaluate", "/ui/projects", "/ui/indices", "/docs", "/docs/index.md")
    for path in (*pages, "/readyz", "/metrics", place):
        _good(client.get(path))


def bodies() -> list[tuple[str, bytes]]:
    """Return the items in every format but JSON, each with its media type."""
    table = pa.table({"y_true": TRUE, "y_pred": PREDICTED})
    csv, arrow, parquet, npz = (io.BytesIO() for _ in range(4))
    pyarrow.csv.write_csv(table, csv)
    with pa.ipc.new_stream(arrow, table.schema) as stream:
        stream.write_table(table)
    pyarrow.parquet.write_table(table, parquet, compression="zstd")
    np.savez_compressed(npz, y_true=TRUE, y_pred=PREDICTED)
    return [
        ("text/csv", csv.getvalue()),
        ("application/vnd.apache.arrow.stream", arrow.getvalue()),
        ("application/vnd.apache.parquet", parquet.getvalue()),
        ("application/x-npz", npz.getvalue()),
    ]


def _address(service: subprocess.Popen[str]) -> str:
    assert service.stdout is not None
    found = re.search(r"http://\S+(?=,)", service.stdout.readline())
    assert found, "the service does not start"
    return found[0]


def _good(response: httpx.Response) -> httpx.Response:
    assert response.status_code in {200, 201}, response.text
    return response


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(Path(sys.executable).with_name("rprime")))
