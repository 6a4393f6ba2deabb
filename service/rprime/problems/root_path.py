"""The prefix of all paths of the service behind a proxy, for the references in answers."""


class _Prefix:
    """Set once for the process, since its answers are made in many places and threads."""

    path = ""


def set_root_path(path: str) -> None:
    """Set the prefix; "" for none."""
    _Prefix.path = path


def rooted(path: str) -> str:
    """Return a path of the service as its clients see it."""
    return _Prefix.path + path
