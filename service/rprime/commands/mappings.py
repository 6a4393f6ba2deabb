"""Gates and options from files of YAML or JSON."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rprime.commands.exit_status import refuse

if TYPE_CHECKING:
    import yaml

Json = dict[str, Any]


def read_mapping(path: Path, what: str) -> Json:
    """Read a file that holds a mapping.

    Parameters
    ----------
    path
        YAML, and with it JSON.
    what
        It is, for messages.
    """
    import yaml

    try:
        content = yaml.load(path.read_bytes(), Loader=_loader())  # noqa: S506 - made of SafeLoader
    except OSError as error:
        refuse(f"cannot read {path}: {error.strerror}")
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        refuse(f"{path} is no YAML: {_line(error)}")
    if isinstance(content, dict) and True in content:
        refuse(f'{path}: YAML reads the name on without quotes as true; write "on" in quotes')
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        refuse(f"{path} must hold {what} as a mapping of names to values")
    return content


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _loader() -> "type[yaml.SafeLoader]":
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a name that stands twice: the last one would silently win."""

        def construct_mapping(
            self,
            node: yaml.MappingNode,
            deep: bool = False,  # noqa: FBT001, FBT002 (the base class has it so)
        ) -> dict[Any, Any]:
            names = [self.construct_object(key, deep=True) for key, _ in node.value]
            for place, name in enumerate(names):
                if name in names[:place] and name != "<<":
                    raise yaml.constructor.ConstructorError(
                        None,
                        None,
                        f"the name {name!r} stands twice",
                        node.value[place][0].start_mark,
                    )
            return super().construct_mapping(node, deep)

    return Loader
