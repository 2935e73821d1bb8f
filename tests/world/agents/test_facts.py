"""What each CLI gets in the sandbox, and how its own sandbox is switched off there."""

import shlex
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

import pytest

from rooda.world.agents.adapter import Adapter
from rooda.world.agents.facts import NETWORK_VARIABLES
from rooda.world.agents.registry import ADAPTERS, COMMANDS, KNOWN, TEXT
from support.tables import each_row

each_known = each_row("adapter", KNOWN.values(), ids=KNOWN)

# Files and folders whose content the CLI runs, or that an editor or a shell of the user reads.
_CODE = (
    *("plugin", "hook", "extension", "mcp", "skill", "command", "agents", "tools", "node_modules"),
    *("package.json", ".claude.json", "trusted_hooks", "shell", ".bashrc", ".profile", ".ssh"),
)
_OFF = '{"sandbox":{"enabled":false}}'


def _passes(adapter: Adapter, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in adapter.needs.variables)


def _inside(command: str) -> str:
    words = shlex.split(command)
    (name,) = {one for one in KNOWN if one in command.replace("/", " ").split()}
    return shlex.join(KNOWN[name].in_sandbox(words))


@each_known
def test_paths_are_below_home_and_hold_no_code(adapter: Adapter) -> None:
    paths = (*adapter.needs.credentials, *adapter.needs.settings)
    assert len(set(paths)) == len(paths)
    for path in paths:
        assert not PurePosixPath(path).is_absolute()
        assert ".." not in PurePosixPath(path).parts
        assert path.startswith(".")
        assert not any(word in path for word in _CODE), path


@each_known
def test_only_single_files_of_credentials_are_writable(adapter: Adapter) -> None:
    for path in adapter.needs.credentials:
        assert PurePosixPath(path).suffix == ".json", path
        assert len(PurePosixPath(path).parts) > 1


@each_known
def test_variables_that_choose_the_paying_account_pass_in(adapter: Adapter) -> None:
    assert all(_passes(adapter, name) for name in adapter.facts.payers)


@each_row(
    "name",
    [
        *(
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
        ),
        *("DOCKER_HOST", "KUBECONFIG", "NPM_TOKEN", "PYPI_TOKEN", "DATABASE_URL", "STRIPE_API_KEY"),
        *("LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV", "GIT_SSH_COMMAND"),
    ],
)
def test_other_secrets_and_settings_stay_outside(name: str) -> None:
    assert not [one.name for one in ADAPTERS.values() if _passes(one, name)]
    assert name not in NETWORK_VARIABLES


def test_unknown_command_gets_no_files_and_no_variables() -> None:
    needs = ADAPTERS[TEXT].needs
    assert not needs.credentials
    assert not needs.settings
    assert not needs.variables
    assert not needs.environ


def test_proxies_pass_in_under_both_spellings() -> None:
    assert {"HTTPS_PROXY", "https_proxy", "no_proxy", "SSL_CERT_FILE"} <= set(NETWORK_VARIABLES)


# -- the CLI's own sandbox -------------------------------------------------------------------


@each_row(
    "command,inside",
    [
        ("claude -p", f"claude --settings '{_OFF}' -p"),
        (
            "env A=b timeout 1h /opt/claude -p",
            f"env A=b timeout 1h /opt/claude --settings '{_OFF}' -p",
        ),
        (
            """claude -p --settings '{"model":"x","sandbox":{"enabled":true,"a":1}}' --verbose""",
            """claude --settings '{"model":"x","sandbox":{"enabled":false,"a":1}}' -p --verbose""",
        ),
        (
            """claude --settings='{"sandbox":7}' -p""",
            f"claude --settings '{_OFF}' -p",
        ),
        # The file may have settings that the run depends on.
        ("claude -p --settings night.json", "claude -p --settings night.json"),
        (
            "codex exec --sandbox workspace-write --json -",
            "codex exec --dangerously-bypass-approvals-and-sandbox --json -",
        ),
        (
            "codex -a never exec -s=read-only -m o3 -",
            "codex exec --dangerously-bypass-approvals-and-sandbox -m o3 -",
        ),
        (
            "codex e --full-auto -- --full-auto",
            "codex e --dangerously-bypass-approvals-and-sandbox -- --full-auto",
        ),
        ("codex exec --yolo -", "codex exec --dangerously-bypass-approvals-and-sandbox -"),
        ("gemini --yolo -s -m x", "gemini --yolo -m x"),
        ("gemini --sandbox=true --yolo", "gemini --yolo"),
        ("qwen --yolo --sandbox --sandbox-image y", "qwen --yolo"),
        ("opencode run --auto", "opencode run --auto"),
        ("cursor-agent -p --sandbox enabled", "cursor-agent --sandbox disabled -p"),
        ("cursor-agent -p -f", "cursor-agent -p -f"),
    ],
)
def test_own_sandbox_is_switched_off_by_flags(command: str, inside: str) -> None:
    assert _inside(command) == inside


@pytest.mark.parametrize("name", ["gemini", "qwen"])
def test_own_sandbox_is_switched_off_by_a_variable_that_overrides_settings(name: str) -> None:
    assert KNOWN[name].needs.environ[f"{name.upper()}_SANDBOX"] == "false"


def test_claude_may_skip_its_permissions_as_root() -> None:
    assert KNOWN["claude"].needs.environ["IS_SANDBOX"] == "1"


@each_known
def test_built_in_alias_keeps_its_output_form_and_permissions(adapter: Adapter) -> None:
    words = shlex.split(COMMANDS[adapter.name])
    inside = adapter.in_sandbox(words)
    assert adapter.form(inside) == adapter.form(words)
    assert not adapter.permissions.missing_flag(inside)
    assert adapter.in_sandbox(inside) == inside


@each_known
def test_flags_of_a_script_that_starts_the_cli_are_unchanged(adapter: Adapter) -> None:
    words = ("./night.sh", "--sandbox", "-s")
    assert adapter.in_sandbox(words) == words
