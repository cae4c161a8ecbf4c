from typing import Any

def json_extends(
    whole_json: dict[str, Any],
    parent_name: str,
    target_json: dict[str, Any],
    excludes_fields: list[str] | None = None,
) -> dict[str, Any]: ...
