"""Read the evidence of requests, the only untrusted bytes, into confusion tables and items."""

# mypy: implicit-reexport
# ruff: noqa: F401 - its imports are what it exports

from rprime.evidence.columns import Hold
from rprime.evidence.formats import FORMATS, MEDIA_TYPES, SUFFIXES, Kind, read_columns, read_members
from rprime.evidence.reader import Evidence, read, read_baseline
from rprime.evidence.tables import read_matrices
