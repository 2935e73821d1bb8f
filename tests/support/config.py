"""The configuration without a process: from files, environment and command line to a plan."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from rooda.base.problems import Problem, Tier
from rooda.front.cli.commands.run import run
from rooda.front.command_table import COMMANDS
from rooda.front.flags import given_flags
from rooda.plan import file_reader
from rooda.plan.file_reader import ConfigFile
from rooda.plan.inspect import Inspection, inspect
from rooda.plan.layers import Layer
from rooda.plan.locate import CONFIG_NAME
from rooda.plan.prepare import Prepared, RunRequest, prepare
from rooda.plan.prompts.parts import PHASES
from rooda.plan.settings.feature_kinds import AddressList, Hook, HookList, MomentList
from rooda.plan.settings.kinds import Boolean, Dollars, Integer, Kind, Seconds, Size
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.text_kinds import (
    AutoBoolean,
    DatabaseUrl,
    DoneWhen,
    FolderText,
    LabelList,
    OneOf,
    PathText,
    SignalWord,
    TemplateText,
    Text,
    TextList,
    TextMap,
)
from rooda.plan.world import World

# The four phases of a procedure, for use in flow style: f"{{p: {{{FOUR}}}}}".
FOUR = ", ".join(f"{phase}: [{{content: words}}]" for phase in PHASES)


def brief_id(value: object) -> str:
    """Return a test id that is the same in each worker."""
    return type(value).__name__ if isinstance(value, Kind) else ascii(value)[:30]


def read(content: str | bytes) -> tuple[Layer, list[Problem]]:
    """Return a workspace file as the loader reads it."""
    data = content.encode() if isinstance(content, str) else content
    return file_reader.read(ConfigFile(Tier.WORKSPACE, data, CONFIG_NAME, Path("/nowhere")))


def world(
    folder: Path,
    *,
    workspace: str | bytes | None = None,
    global_: str | bytes | None = None,
    env: Mapping[str, str] | None = None,
) -> World:
    """Create a work folder and a home below `folder`, with the given config files.

    git knows the user, unless the test has written a config file of git itself.
    """
    work, home = folder / "work", folder / "home"
    work.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    if not (gitconfig := home / ".gitconfig").exists():
        gitconfig.write_text("[user]\n    name = A User\n    email = user@example.org\n")
    _place(work / CONFIG_NAME, workspace)
    _place(home / ".config" / "rooda" / CONFIG_NAME, global_)
    environ = {"HOME": str(home), "PATH": os.environ.get("PATH", os.defpath), **(env or {})}
    return World(work, environ)


def _place(path: Path, content: str | bytes | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def planned(
    folder: Path,
    *arguments: str,
    workspace: str | bytes | None = None,
    global_: str | bytes | None = None,
    env: Mapping[str, str] | None = None,
) -> Prepared:
    """Return what `rooda run ARGUMENTS` would do.

    The arguments go through the real command line.
    """
    given = run.make_context("run", list(arguments)).params
    request = RunRequest(
        procedure=given["procedure"],
        flags=given_flags(given),
        contexts=given["contexts"],
        phases={phase: given[phase] for phase in PHASES if given[phase]},
        config=given["config"],
        commands=frozenset(COMMANDS),
    )
    return prepare(request, world(folder, workspace=workspace, global_=global_, env=env))


def inspected(folder: Path, procedure: str = "", **files: Any) -> Inspection:
    """Return what `rooda config show` and `rooda config check` inspect."""
    found = world(folder, **files)
    return inspect(found, procedure=procedure, commands=frozenset(COMMANDS))


class Sample(NamedTuple):
    """A value that is not the default: as YAML, as text for a variable or flag, as resolved."""

    yaml: str
    text: str
    value: Any


def sample(setting: Setting[Any]) -> Sample:  # noqa: C901, PLR0912 - a table, one row a kind
    """Return a valid value for any setting. Add a case here for a new kind of value."""
    match setting.kind:
        case AutoBoolean():
            return Sample("false", "off", "false")
        case Boolean():
            word = "false" if setting.default else "true"
            return Sample(word, word, not setting.default)
        case Integer():
            number = setting.kind.minimum + 4
            number += number == setting.default
            return Sample(str(number), str(number), number)
        case Seconds():
            return Sample("1m30s", "90", 90.0)
        case Size():
            return Sample("3MB", "3145728", 3 * 1024 * 1024)
        case OneOf():
            word = next(w for w in reversed(setting.kind.options) if w != setting.default)
            return Sample(json.dumps(word), word, word)
        case MomentList():
            return Sample("[waiting, end]", "waiting,end", ("waiting", "end"))
        case AddressList():
            address = "json://127.0.0.1:9/hook"
            return Sample(f"[{address}]", address, (address,))
        case LabelList():
            return Sample("[gpu, big]", "gpu,big", ("gpu", "big"))
        case DatabaseUrl():
            return Sample("sqlite:////x.db", "sqlite:////x.db", "sqlite:////x.db")
        case TextList():
            # The words may be commands, which have to exist.
            return Sample("[cat, echo words]", "cat 'echo words'", ("cat", "echo words"))
        case TextMap():
            return Sample("{ONE: two words}", "ONE='two words'", {"ONE": "two words"})
        case DoneWhen():
            return Sample("'command: cat x'", "command:cat x", "command: cat x")
        case SignalWord():
            word = setting.key.rpartition(".")[2].upper() + "-WORD"
            return Sample(word, word, word)
        case TemplateText():
            text = f"{{{{x}}}} of {{{setting.kind.names[-1]}}}"
            return Sample(f"'{text}'", text, text)
        case Dollars():
            return Sample("2.5", "2.5", 2.5)
        case HookList():
            return Sample("[sync -f .]", "sync -f .", (Hook("sync -f ."),))
        case FolderText():
            return Sample("some/folder", "some/folder", "some/folder")
        case PathText():
            return Sample("some/place", "some/place", "some/place")
        case Text() if setting.key == "git.branch":
            return Sample("night", "night", "night")
        case Text():
            return Sample("printf 'a b'", "printf 'a b'", "printf 'a b'")
        case unknown:
            raise NotImplementedError(f"teach tests/support/config.py a sample of {unknown!r}")


def wrong_text(setting: Setting[Any]) -> str:
    """Return text that a variable or flag of the setting must refuse."""
    return "   " if isinstance(setting.kind, (Text, TextList, HookList)) else "no such value"


def in_section(setting: Setting[Any], value: str) -> str:
    """Return `key: value`, or `section: {key: value}` for a dotted key, in flow style."""
    section, dot, name = setting.key.partition(".")
    return f"{section}: {{{name}: {value}}}" if dot else f"{section}: {value}"


def flag_arguments(setting: Setting[Any], given: Sample) -> list[str]:
    """Return the command line arguments that set the sample."""
    if isinstance(setting.kind, Boolean):
        name = setting.flag_name
        return [name if given.value else f"--no-{name.removeprefix('--')}"]
    if isinstance(setting.kind, TextMap):
        return [setting.flag_name, *(f"{k}={v}" for k, v in given.value.items())]
    if isinstance(setting.kind, TextList):
        return [word for value in given.value for word in (setting.flag_name, value)]
    return [setting.flag_name, given.text]


def dumped(value: object) -> bytes:
    """Return Python values as a YAML file."""
    return str(yaml.safe_dump(value, allow_unicode=True)).encode("utf-8", "replace")
