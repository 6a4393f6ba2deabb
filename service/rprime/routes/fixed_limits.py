"""Limits without a setting, as `/version` shows them, read from the modules that enforce them."""

from pydantic import BaseModel, Field

from rprime.application.assessment import MOST_COMPARED
from rprime.core.naming import LONGEST_NAME
from rprime.core.page import DEFAULT_PAGE_VALUES
from rprime.evidence.columns import LONGEST_LINE
from rprime.evidence.npz_body import MOST_DIRECTORY
from rprime.routes.workers import STALLED_SECONDS
from rprime.server.inflating import FREE_OF_RATIO, LARGEST_WINDOW, MOST_RATIO
from rprime.server.worker_limits import CPU_SECONDS


class FixedLimits(BaseModel):
    """Limits of a request in every installation."""

    inflated_ratio: int = Field(
        MOST_RATIO, description="Largest ratio of inflated to received bytes in gzip or zstd."
    )
    inflated_free_bytes: int = Field(
        FREE_OF_RATIO, description="Inflated bytes that are allowed at any ratio."
    )
    zstd_window_bytes: int = Field(LARGEST_WINDOW, description="Largest window of a body in zstd.")
    csv_line_bytes: int = Field(LONGEST_LINE, description="Longest line of a CSV.")
    worker_cpu_seconds: int = Field(CPU_SECONDS, description="Processor time of a large request.")
    npz_directory_bytes: int = Field(MOST_DIRECTORY, description="Directory of an NPZ archive.")
    stalled_seconds: float = Field(
        STALLED_SECONDS, description="Longest pause within a body of columns."
    )
    name_characters: int = Field(LONGEST_NAME, description="Longest name of a class.")
    compared_classes: int = Field(MOST_COMPARED, description="Most classes of a comparison.")
    unasked_values: int = Field(
        DEFAULT_PAGE_VALUES,
        description="Most values of classes in a report, unless `classes` selects classes.",
    )
