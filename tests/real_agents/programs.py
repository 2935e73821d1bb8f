"""The paths of the agent programs, and their settings for the scripted API.

The command lines are rooda's built-in aliases, unchanged. All other settings are environment
variables and files in the home folder of the test.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = ROOT / ".agents/node_modules/.bin"
KEY_NAME = "SCRIPTED_KEY"  # codex: the variable that its config names
KEY = "dummy-key-of-a-test"
# The variables that the programs inherit: no keys, no settings, no sessions.
_INHERITED = ("PATH", "LANG", "LC_ALL", "USER", "LOGNAME", "SHELL")


@dataclass(frozen=True)
class Program:
    """One agent: its alias in rooda, and a function that prepares its home and environment."""

    name: str
    prepare: Callable[[Path, str], dict[str, str]]

    @property
    def path(self) -> Path:
        """The path of the installed program."""
        return BIN / self.name


def _claude(_: Path, base: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": base,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # The default retries take three minutes.
        "CLAUDE_CODE_MAX_RETRIES": "1",
        # claude refuses to run as root outside of a sandbox.
        "IS_SANDBOX": "1",
    }


_CODEX = """
model = "gpt-5-codex"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "{base}/v1"
env_key = "{key_name}"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""


def _codex(home: Path, base: str) -> dict[str, str]:
    _write(home / ".codex/config.toml", _CODEX.format(base=base, key_name=KEY_NAME))
    return {KEY_NAME: KEY}


def _gemini(home: Path, base: str) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True, "maxAttempts": 2},
    }
    _write(home / ".gemini/settings.json", json.dumps(settings))
    return {
        "GOOGLE_GEMINI_BASE_URL": base,
        "GEMINI_API_KEY": KEY,
        "GEMINI_MODEL": "gemini-2.5-pro",
        "GEMINI_TELEMETRY_ENABLED": "false",
    }


def _opencode(_: Path, base: str) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{base}/v1", "apiKey": KEY},
        "models": {"scripted-model": {"name": "Scripted"}},
    }
    config = {
        "provider": {"scripted": provider},
        "model": "scripted/scripted-model",
        "small_model": "scripted/scripted-model",
        "autoupdate": False,
        "share": "disabled",
    }
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(config),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }


PROGRAMS = {
    "claude": Program("claude", _claude),
    "codex": Program("codex", _codex),
    "gemini": Program("gemini", _gemini),
    "opencode": Program("opencode", _opencode),
}


def environment(program: Program, home: Path, api: str, scenario: str) -> dict[str, str | None]:
    """Return the changes of the environment; `None` unsets a variable of the machine.

    The API is also the proxy: it refuses and records requests to any other host.
    """
    own = program.prepare(home, f"{api}/{scenario}")
    gone = dict.fromkeys(name for name in os.environ if name not in _INHERITED)
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), api)
    local = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    return {
        **gone,
        **proxies,
        **local,
        "PATH": path,
        "HOME": str(home),
        "TMPDIR": str(home),
        **own,
    }


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
