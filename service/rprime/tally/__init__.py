"""Count confusion tables by a database or cluster engine, where the predictions are stored."""

from rprime.tally.counting import Tallies, tally
from rprime.tally.engines import Engine, Files, opened
from rprime.tally.errors import TallyError, UnreachableEngineError
from rprime.tally.table import Tally, slice_tables

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
