"""Reports in files: text, or JSON where the file's name says so."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_report(path: str | os.PathLike[str], text: str, document: Mapping[str, Any]) -> None:
    """Writes the document into a file whose name ends in ``.json``, the text into any other; its folder is made."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    content = json.dumps(document, indent=2, ensure_ascii=False) if file.suffix.lower() == ".json" else text
    file.write_text(content + "\n", encoding="utf-8")
