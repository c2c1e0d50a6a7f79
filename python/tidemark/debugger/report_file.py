"""Reports in files: text, or JSON by the file's name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_report(path: str | os.PathLike[str], text: str, document: Mapping[str, Any]) -> None:
    """Writes the document to a file with a name that ends in ``.json``, the text to any other; creates its folder."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    content = json.dumps(document, indent=2, ensure_ascii=False) if file.suffix.lower() == ".json" else text
    file.write_text(content + "\n", encoding="utf-8")
