"""Store evaluations in SQLite or PostgreSQL, as evidence and metadata."""

# mypy: implicit-reexport
# ruff: noqa: F401 - its imports are what it exports

from rprime.store.aliases import Alias, AliasChangedError, AliasPut, Expected
from rprime.store.baselines import Baseline, BaselineNotFoundError, BaselineQuery, Candidate
from rprime.store.database import STATES, DatabaseOptions, StoreHealth
from rprime.store.errors import StoreError, StoreFullError, StoreMissingError, StoreUnavailableError
from rprime.store.evaluations import EvaluationMissingError, InvalidCursorError
from rprime.store.ids import is_id, new_id
from rprime.store.insertion import Idempotency, LookMovedError, Outcome, Packed, Replay, Stored
from rprime.store.projects import ProjectMissingError, Retention
from rprime.store.records import EvaluationSummary, Filters, NewEvaluation, Stack, StoredEvaluation
from rprime.store.store import KeyRunningError, Store, open_store
from rprime.store.transfer import InvalidExportError
