"""What a file with gates may hold, for editors and checkers."""

import typer


def gates_schema() -> None:
    """Print the JSON Schema of a gates file."""
    import json

    from rprime.schemas.gate import Gates

    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Gates.model_json_schema(),
    }
    typer.echo(json.dumps(schema, indent=2))
