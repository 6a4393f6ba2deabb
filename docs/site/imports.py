"""Draw the imports of ARCHITECTURE.md: `sh .ci/venv python docs/site/imports.py`."""

from pathlib import Path

import grimp

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"
BEGIN, END = "<!-- imports:begin -->\n", "<!-- imports:end -->"
Arrow = tuple[str, str]


def arrows() -> set[Arrow]:
    """Return which package imports which, from the imports of their modules."""
    graph = grimp.build_graph("rprime")
    pairs = (
        (module.split(".")[1:2], imported.split(".")[1:2])
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    )
    return {(a[0], b[0]) for a, b in pairs if a and b and a != b}


def reachable(start: str, edges: set[Arrow]) -> set[str]:
    """Return what a package imports, directly or through others."""
    direct = {b for a, b in edges if a == start}
    return direct.union(*(reachable(name, edges) for name in direct))


def drawn(edges: set[Arrow]) -> set[Arrow]:
    """Return the arrows without those that a longer way implies."""
    below = {name: reachable(name, edges) for arrow in edges for name in arrow}
    return {
        (a, b) for a, b in edges if not any(b in below[c] for x, c in edges if x == a and c != b)
    }


def written(text: str) -> str:
    """Return a text with the picture made anew, between its two comments."""
    before, _, rest = text.partition(BEGIN)
    lines = "".join(f"  {a} --> {b}\n" for a, b in sorted(drawn(arrows())))
    return f"{before}{BEGIN}```mermaid\ngraph TD\n{lines}```\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    ARCHITECTURE.write_text(written(ARCHITECTURE.read_text(encoding="utf-8")), encoding="utf-8")
