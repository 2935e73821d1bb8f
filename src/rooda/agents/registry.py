"""Every agent CLI that we know. An adapter is a module and its line here."""

from collections.abc import Mapping
from typing import Final

from rooda.agents.adapter import Adapter
from rooda.agents.claude import Claude
from rooda.agents.codex import Codex
from rooda.agents.copilot import Copilot
from rooda.agents.cursor import Cursor
from rooda.agents.gemini import Gemini
from rooda.agents.kiro import Kiro
from rooda.agents.opencode import Opencode
from rooda.agents.plain import Plain
from rooda.agents.qwen import Qwen

PLAIN: Final[Adapter] = Plain()
_KNOWN: tuple[Adapter, ...] = (
    Claude(),
    Codex(),
    Gemini(),
    Opencode(),
    Qwen(),
    Copilot(),
    Cursor(),
    Kiro(),
)
KNOWN: Final[Mapping[str, Adapter]] = {adapter.name: adapter for adapter in _KNOWN}
ADAPTERS: Final[Mapping[str, Adapter]] = {**KNOWN, PLAIN.name: PLAIN}
