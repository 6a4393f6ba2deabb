"""Count confusion tables by a database or cluster engine, where the predictions are stored."""

from rprime.tally.counting import Tallies, tally
from rprime.tally.engines import Engine, Files, UnreachableEngineError, opened
from rprime.tally.table import Tally, TallyError, slice_tables

__all__ = [
    "Engine",
    "Files",
    "Tallies",
    "Tally",
    "TallyError",
    "UnreachableEngineError",
    "opened",
    "slice_tables",
    "tally",
]
