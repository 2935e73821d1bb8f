"""Every agent CLI that rooda knows, one line each.

A run needs one or two adapters, so the module of an adapter is imported on first use.
Shell completion uses the names and commands here, so this module imports no adapter.
"""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from rooda.base.lookup import LazyMapping

if TYPE_CHECKING:
    from rooda.world.agents.adapter import Adapter

# The key is the name of the alias, the program and the adapter. The value is the command of the
# built-in alias. The adapter is `ADAPTER` in the module of that name (with `_` for `-`).
COMMANDS: Final[Mapping[str, str]] = {
    "claude": "claude -p --dangerously-skip-permissions --output-format stream-json --verbose",
    "codex": "codex exec --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check --json -",
    "gemini": "gemini --yolo --skip-trust -o stream-json",
    "opencode": "opencode run --auto --format json",
    "qwen": "qwen --yolo -o stream-json",
    "copilot": "copilot --allow-all --output-format json",
    "cursor-agent": "cursor-agent -p -f --output-format stream-json",
    "kiro-cli": "kiro-cli chat --no-interactive --trust-all-tools",
}
TEXT: Final = "text"  # the adapter of every other command, in adapter.py


def _load(name: str) -> "Adapter":
    module = "adapter" if name == TEXT else name.replace("-", "_")
    adapter: Adapter = importlib.import_module(f"rooda.world.agents.{module}").ADAPTER
    return adapter


KNOWN: Final[Mapping[str, "Adapter"]] = LazyMapping(COMMANDS, _load)
ADAPTERS: Final[Mapping[str, "Adapter"]] = LazyMapping((*COMMANDS, TEXT), _load)
