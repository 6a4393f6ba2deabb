"""The migrations, which import nothing that changes with the code of today."""


class DamagedRowError(Exception):
    """A row that its migration cannot read."""
