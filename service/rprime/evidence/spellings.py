"""Labels of people and language models: other spellings of a class, and texts that are none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from rprime.core.arrays import Array
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.evidence.names import is_name, plain

_MOST_SHOWN = 5
"""Most texts that a warning names."""
_LONGEST_SHOWN = 40
_SOURCE = "docs/cli.md#labels"
_DETAILS = {
    "aliased_labels": "{} labels were read by `aliases`: ",
    "unknown_labels": "{} predictions are no class of `labels` and count as unclassified: ",
}

Texts = Sequence[str | None]


@dataclass(frozen=True)
class Spellings:
    """What a request says about labels that are not classes."""

    aliases: Mapping[str, str] = field(default_factory=dict)
    """The class that each other text means; texts in NFC and without surrounding white space."""
    unclassified: bool = False
    """Whether predictions of no declared class count as missing."""

    spurious: bool = False
    """Whether items may have no true label, because their predictions are spurious."""

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> Self:
        """Read the members of a request; what is malformed is refused with the other members."""
        member = members.get("aliases")
        aliases = member if isinstance(member, dict) else {}
        spellings = {plain(a): plain(b) for a, b in aliases.items() if isinstance(b, str)}
        unclassified = members.get("unknown_labels") == "unclassified"
        return cls(spellings, unclassified, members.get("missing_true") == "spurious")

    def renamed(self, texts: Texts) -> list[str | None]:
        """Put classes in the place of their aliases."""
        return [None if text is None else self.aliases.get(plain(text), text) for text in texts]

    def warnings(
        self, sent: Texts, meant: Texts, without: Array, counts: Array
    ) -> tuple[Warning, ...]:
        """Say what was mapped to what, and how often.

        Given are the texts by code, as they came and as they are read; which codes are no class,
        and how many labels have each code, shape (codes,).
        """
        warnings = []
        renamed = np.array([a != b for a, b in zip(sent, meant, strict=True)])
        unknown = without & np.array([text is not None for text in sent])
        for code, which in (("aliased_labels", renamed & ~unknown), ("unknown_labels", unknown)):
            number = int(counts[which].sum())
            if number:
                detail = _DETAILS[code].format(number) + _shown(sent, meant, which, counts)
                warnings.append(Warning(code, "/labels", detail, _SOURCE))
        return tuple(warnings)


def _shown(sent: Texts, meant: Texts, which: Array, counts: Array) -> str:
    """List the most frequent texts that can be shown, and count the others."""
    order = sorted(np.flatnonzero(which).tolist(), key=lambda code: -counts[code])
    parts: list[str] = []
    rest = 0
    for code in order:
        text, other = sent[code] or "", meant[code]
        if len(parts) == _MOST_SHOWN or len(text) > _LONGEST_SHOWN or not is_name(text):
            rest += int(counts[code])
        else:
            to = f" as `{other}`" if other != text else ""
            parts.append(f"`{text}`{to} {counts[code]}")
    return ", ".join([*parts, *([f"others {rest}"] if rest else [])]) + "."


AS_SENT = Spellings()
"""No text has another meaning."""
