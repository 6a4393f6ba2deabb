"""The items whose prediction changed, by the ids that a request sends."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import orjson

from rprime.core.comparison.compare import Comparison
from rprime.core.comparison.flips import ITEM_CHANGES, ItemChanges
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.evidence import Evidence
from rprime.problems.problem import refuse
from rprime.schemas.request import ChangedItemsOption, ChangedItemsWanted

if TYPE_CHECKING:
    from rprime.evidence.arrow_body import Identities


POINTER = "/changed_items"


NOTHING = b"null"


NOT_MATCHED = Warning(
    "changed_items_unknown",
    POINTER,
    "Which items changed is not known: they are not compared one by one, or one side has no ids. "
    "Send `item_id` with both sides, and let the service keep the items of what it stores.",
    "docs/http-api.md#changed-items",
)


@dataclass(frozen=True, eq=False)
class ChangedItemsPage:
    """The page of changed items that a request asks for, and the texts of the ids.

    A store keeps a number in place of each id, so that the texts are those of the request.
    """

    limit: int
    offset: int
    identities: "Identities"

    @classmethod
    def of(cls, option: ChangedItemsOption, *sides: Evidence | None) -> Self | None:
        """Return what a request asks for, given the evidence in it; None of a stored side."""
        if option is False:
            return None
        page = ChangedItemsWanted() if option is True else option
        sent = [side for side in sides if side is not None]
        named = [side.identities for side in sent if side.identities is not None]
        if not sent:
            raise refuse(POINTER, "no_item_ids", _ALL_STORED)
        if len(named) < len(sent):
            raise refuse(POINTER, "no_item_ids", _NO_IDS)
        return cls(page.limit, page.offset, named[0])

    def member(self, comparison: Comparison | None) -> bytes:
        """Render the member of the answer; null where items are not compared one by one."""
        changed = None if comparison is None else comparison.changed_items
        if comparison is None or changed is None:
            return NOTHING
        return orjson.dumps(self._document(changed, comparison.sides[0].labels))

    def _document(self, changed: ItemChanges, labels: tuple[str, ...]) -> dict[str, Any]:
        shown, total = slice(self.offset, self.offset + self.limit), changed.ids.size
        names = np.array([*labels, None], dtype=object)
        columns = {
            "id": self._texts(changed.ids[shown]),
            "true": names[changed.true[shown]].tolist(),
            "was": names[changed.old[shown]].tolist(),
            "is": names[changed.new[shown]].tolist(),
            "change": [ITEM_CHANGES[kind] for kind in changed.kinds[shown].tolist()],
        }
        rows = zip(*columns.values(), strict=True)
        items = [dict(zip(columns, row, strict=True)) for row in rows]
        document = {"total": total, "left_out": total - len(items)}
        document |= {"limit": self.limit, "offset": self.offset}
        return {**document, **dict(zip(ITEM_CHANGES, changed.counts, strict=True)), "items": items}

    def _texts(self, ids: np.ndarray[Any, Any]) -> list[str]:
        """Return the texts of ids that are known by their numbers."""
        from rprime.evidence.digest import numbers_of  # noqa: PLC0415 (ids are rare)

        numbers = numbers_of(self.identities)
        order = np.argsort(numbers)
        return list(self.identities.texts(order[np.searchsorted(numbers[order], ids)]))


_NO_IDS = "Send `item_id` with both sides: changed items are named by it."


_ALL_STORED = (
    "Both sides are stored, and a store keeps a number in place of each id: send one side as items "
    "with `item_id`."
)
