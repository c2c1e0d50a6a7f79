"""Messages in English or Chinese.

Code calls ``say("peak {mb:.1f} MB", mb=12.5)``; the English template is the key of its translation in ``tidemark._chinese``. A
template without one stays English. The language is the argument ``lang``, else ``TIDEMARK_LANG``, else English.
"""

from __future__ import annotations

import os


def language(lang: str | None = None) -> str:
    """``"zh"`` for any Chinese (``zh``, ``zh_CN.UTF-8``), else ``"en"``."""
    chosen = lang if lang is not None else os.environ.get("TIDEMARK_LANG", "")
    return "zh" if chosen.lower().startswith("zh") else "en"


def say(template: str, lang: str | None = None, /, **values: object) -> str:
    """The template in the language, filled with the values as ``str.format`` does."""
    if language(lang) == "zh":
        from tidemark._chinese import CHINESE

        template = CHINESE.get(template, template)
    return template.format(**values)
