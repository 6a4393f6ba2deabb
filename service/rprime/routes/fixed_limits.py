"""Limits that nobody can set: what `/version` says of them follows from where they hold."""

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
    """What a request may have in any installation."""

    inflated_ratio: int = Field(
        MOST_RATIO, description="How many times larger a body in gzip or zstd may become."
    )
    inflated_free_bytes: int = Field(
        FREE_OF_RATIO, description="So far it may be inflated whatever was sent."
    )
    zstd_window_bytes: int = Field(LARGEST_WINDOW, description="Largest window of a body in zstd.")
    csv_line_bytes: int = Field(LONGEST_LINE, description="Longest line of a CSV.")
    worker_cpu_seconds: int = Field(CPU_SECONDS, description="Processor time of a large request.")
    npz_directory_bytes: int = Field(MOST_DIRECTORY, description="Directory of an NPZ archive.")
    stalled_seconds: float = Field(
        STALLED_SECONDS, description="How long nothing may come of a body of columns."
    )
    name_characters: int = Field(LONGEST_NAME, description="Longest name of a class.")
    compared_classes: int = Field(MOST_COMPARED, description="Most classes of a comparison.")
    unasked_values: int = Field(
        DEFAULT_PAGE_VALUES,
        description="Values of classes in a report, as long as `classes` asks for no others.",
    )
