"""Results that are kept beside the programs that measure them, and shown in docs/validation.md."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def today() -> str:
    """The date that results state."""
    return datetime.now(UTC).date().isoformat()


def keep(path: Path, content: Mapping[str, Any]) -> None:
    """Write results and their date as JSON: a row a line, to four digits."""
    text = json.dumps({"date": today(), **rounded(content)}, separators=(",", ":"))
    path.write_text(text.replace("},{", "},\n{") + "\n", encoding="ascii")


def rounded(content: Any) -> Any:
    """The same to four digits, which are more than the intervals hold."""
    if isinstance(content, Mapping):
        return {name: rounded(value) for name, value in content.items()}
    if isinstance(content, list):
        return [rounded(value) for value in content]
    return float(f"{content:.4g}") if isinstance(content, float) else content
