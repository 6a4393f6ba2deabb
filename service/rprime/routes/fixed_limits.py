"""Limits that nobody can set: what `/version` says of them follows from where they hold."""

from pydantic import BaseModel, Field

from rprime.application.assessment import MOST_COMPARED
from rprime.core.naming import LONGEST_NAME
from rprime.core.page import DEFAULT_PAGE_VALUES
from rprime.evidence.arrow_messages import MOST_METADATA
from rprime.evidence.columns import LONGEST_LINE
from rprime.evidence.npz_body import MOST_DIRECTORY
from rprime.evidence.parquet_footer import MOST_BYTES, MOST_COLUMNS
from rprime.evidence.parquet_pages import MOST_PAGES
from rprime.routes.columns import STALLED_SECONDS
from rprime.server.body import FREE_OF_RATIO, LARGEST_WINDOW, MOST_RATIO


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
    arrow_metadata_bytes: int = Field(
        MOST_METADATA, description="Metadata of a message of an Arrow stream."
    )
    parquet_metadata_bytes: int = Field(MOST_BYTES, description="Metadata of a Parquet file.")
    parquet_columns: int = Field(MOST_COLUMNS, description="Columns of a Parquet file.")
    parquet_pages: int = Field(MOST_PAGES, description="Pages of a Parquet file.")
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
