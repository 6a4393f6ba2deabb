"""The loader of YAML that files of gates and options are read by."""

from typing import Any

import yaml

_BOOLEAN = "tag:yaml.org,2002:bool"
_DATE = "tag:yaml.org,2002:timestamp"
_MERGE = "tag:yaml.org,2002:merge"


class Loader(yaml.SafeLoader):
    """Refuses a name that stands twice: the last one would silently win.

    Of words, only true and false are booleans, as in YAML 1.2: `on` is a name. A date stays a
    text, which is checked with its place.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 (the base class has it so)
        first: [
            (tag, words)
            for tag, words in resolvers
            if tag != _DATE and (tag != _BOOLEAN or first in "tTfF")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 (the base class has it so)
    ) -> dict[Any, Any]:
        """Construct a mapping of distinct names."""
        keys = [key for key, _ in node.value if key.tag != _MERGE]
        names = [self.construct_object(key, deep=True) for key in keys]
        for place, name in enumerate(names):
            if name in names[:place]:
                message, mark = f"the name {name!r} stands twice", keys[place].start_mark
                raise yaml.constructor.ConstructorError(None, None, message, mark)
        return super().construct_mapping(node, deep)
