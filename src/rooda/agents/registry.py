"""Every agent CLI that we know. An adapter is a module and its line here.

A run needs one of them, so each is loaded when it is asked for.
"""

import importlib
from collections.abc import Mapping
from typing import Final

from rooda.agents.adapter import Adapter
from rooda.agents.plain import Plain
from rooda.text.lookup import LazyMapping

# name: (module below rooda.agents, class)
_MODULES: Mapping[str, tuple[str, str]] = {
    "claude": ("claude", "Claude"),
    "codex": ("codex", "Codex"),
    "gemini": ("gemini", "Gemini"),
    "opencode": ("opencode", "Opencode"),
    "qwen": ("qwen", "Qwen"),
    "copilot": ("copilot", "Copilot"),
    "cursor-agent": ("cursor", "Cursor"),
    "kiro-cli": ("kiro", "Kiro"),
}


def _load(name: str) -> Adapter:
    module, kind = _MODULES[name]
    adapter: Adapter = getattr(importlib.import_module(f"rooda.agents.{module}"), kind)()
    return adapter


PLAIN: Final[Adapter] = Plain()
KNOWN: Final[Mapping[str, Adapter]] = LazyMapping(_MODULES, _load)
ADAPTERS: Final[Mapping[str, Adapter]] = LazyMapping(
    (*_MODULES, PLAIN.name), lambda name: PLAIN if name == PLAIN.name else KNOWN[name]
)
