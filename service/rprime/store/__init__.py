"""Store evaluations in SQLite or PostgreSQL, as evidence and metadata."""

from rprime.store.aliases import Alias, AliasChangedError, AliasMissingError, AliasPut, Expected
from rprime.store.baselines import Baseline, BaselineQuery
from rprime.store.database import KeyRunningError
from rprime.store.errors import (
    StoreClosedError,
    StoreConflictError,
    StoreDamagedError,
    StoreError,
    StoreForeignError,
    StoreFullError,
    StoreInUseError,
    StoreLockedError,
    StoreMissingError,
    StoreMovedError,
    StoreNewerError,
    StoreOutdatedError,
    StoreTimeoutError,
    StoreUnavailableError,
    StoreUrlError,
)
from rprime.store.evaluations import (
    EvaluationAliasedError,
    EvaluationMissingError,
    InvalidCursorError,
)
from rprime.store.ids import is_id, new_id
from rprime.store.insertion import (
    EvaluationExistsError,
    Idempotency,
    KeyReusedError,
    LookMovedError,
    Outcome,
    Packed,
    Replay,
    Stored,
)
from rprime.store.packed_items import KeptItems
from rprime.store.projects import ProjectMissingError, Purged, Retention
from rprime.store.records import (
    EvaluationPage,
    EvaluationSummary,
    Filters,
    InvalidRecordError,
    ModelSummary,
    NewEvaluation,
    Project,
    Stack,
    StoredEvaluation,
)
from rprime.store.store import Store, open_store
from rprime.store.transfer import Imported, InvalidExportError

__all__ = [
    "Alias",
    "AliasChangedError",
    "AliasMissingError",
    "AliasPut",
    "Baseline",
    "BaselineQuery",
    "EvaluationAliasedError",
    "EvaluationExistsError",
    "EvaluationMissingError",
    "EvaluationPage",
    "EvaluationSummary",
    "Expected",
    "Filters",
    "Idempotency",
    "Imported",
    "InvalidCursorError",
    "InvalidExportError",
    "InvalidRecordError",
    "KeptItems",
    "KeyReusedError",
    "KeyRunningError",
    "LookMovedError",
    "ModelSummary",
    "NewEvaluation",
    "Outcome",
    "Packed",
    "Project",
    "ProjectMissingError",
    "Purged",
    "Replay",
    "Retention",
    "Stack",
    "Store",
    "StoreClosedError",
    "StoreConflictError",
    "StoreDamagedError",
    "StoreError",
    "StoreForeignError",
    "StoreFullError",
    "StoreInUseError",
    "StoreLockedError",
    "StoreMissingError",
    "StoreMovedError",
    "StoreNewerError",
    "StoreOutdatedError",
    "StoreTimeoutError",
    "StoreUnavailableError",
    "StoreUrlError",
    "Stored",
    "StoredEvaluation",
    "is_id",
    "new_id",
    "open_store",
]
