"""The variables that a program sees in a sandbox: those that it needs, and those that rooda sets.

bubblewrap itself gets this environment: programs inside can read that of bubblewrap.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct, field

from rooda.base.paths import file_mode
from rooda.world.agents.facts import NETWORK_VARIABLES, SandboxNeeds
from rooda.world.git.git import Git, GitError, unattended
from rooda.world.sandbox.mounts import Mounts
from rooda.world.tools import Command, Tools

_PASSED = (
    *("PATH", "HOME", "LANG", "LANGUAGE", "LC_*", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR"),
    *("TZ", "USER", "LOGNAME", "SHELL", "CI", "EDITOR"),
    *("PYENV_ROOT", "PYENV_VERSION", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "GOROOT", "JAVA_HOME"),
    *("NVM_DIR", "NVM_BIN", "VOLTA_HOME", "BUN_INSTALL", "PNPM_HOME", "VIRTUAL_ENV"),
    *("ROODA_RUN", "ROODA_TOKEN"),  # not ROODA_*: a setting of the fleet may have a password
    *("ROODA_SLOT", "ROODA_PORT_BASE", "COMPOSE_PROJECT_NAME"),
    *NETWORK_VARIABLES,
)


def inside(
    environ: Mapping[str, str],
    outside: Mapping[str, str],
    names: Iterable[str],
    needs: SandboxNeeds,
) -> dict[str, str]:
    """Return the variables of `environ` that pass in.

    What differs from the environment `outside` was set by rooda or by a setting, for this program.
    `names` (with *) are those that the user lets in.
    """
    patterns = (*_PASSED, *names, *needs.variables)
    exact = {one for one in patterns if "*" not in one}
    wild = [one for one in patterns if "*" in one]
    passed = {
        name: value
        for name, value in environ.items()
        if name in exact
        or outside.get(name) != value
        or any(fnmatchcase(name, one) for one in wild)
    }
    return {**passed, **needs.environ}


def of_loader(environ: Mapping[str, str]) -> list[str]:
    """Return the variables with which bubblewrap itself would load code, before it shuts anything.

    They can name files of the work tree.
    """
    return [name for name in environ if name.startswith("LD_") or name == "GLIBC_TUNABLES"]


def with_git_settings(
    environ: Mapping[str, str], settings: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """Return the environment with settings of git added to those that it has already."""
    given = environ.get("GIT_CONFIG_COUNT", "0")
    number = int(given) if given.isdecimal() else 0
    found = dict(environ)
    for key, value in settings:
        found[f"GIT_CONFIG_KEY_{number}"] = key
        found[f"GIT_CONFIG_VALUE_{number}"] = value
        number += 1
    found["GIT_CONFIG_COUNT"] = str(number)
    return found


# What git inside of a sandbox needs of the user's git outside: the name, and how to read files.
#
# The user's own config stays outside: it may contain tokens. Without filters (git-lfs) and ignore
# rules, a commit would contain other bytes, and other files.


_TIMEOUT = 20.0
_ROLES = ("AUTHOR", "COMMITTER")
_IDENTITY = re.compile(r"(?P<name>.*) <(?P<email>[^<>]*)> \d+ [+-]\d+")
_SETTINGS = (
    r"^(user\.(name|email)|init\.defaultbranch|commit\.cleanup|filter\..*"
    r"|core\.(excludesfile|attributesfile|autocrlf|safecrlf|eol|quotepath|precomposeunicode))$"
)
_FILES = ("core.excludesfile", "core.attributesfile")
_DEFAULT_FILES = (".config/git/ignore", ".config/git/attributes")
# Housekeeping by itself takes time and space. `git gc` would write `info/refs`, which only web
# servers without git need, to a read-only folder.
_ALWAYS = (
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("repack.updateServerInfo", "false"),
)


class UserGitSettings(Struct, frozen=True):
    """The identity as variables, settings as pairs, and the files that these name."""

    identity: dict[str, str] = field(default_factory=dict)
    settings: tuple[tuple[str, str], ...] = _ALWAYS
    files: tuple[Path, ...] = ()

    @classmethod
    def read(cls, folder: Path, home: Path, tools: Tools) -> "UserGitSettings":
        """Ask the user's git, in the work tree."""
        if tools.git is None:
            return cls()
        found = _settings(Git(folder, tools))
        named = [Path(value.replace("~", str(home), 1)) for key, value in found if key in _FILES]
        files = [*(home / name for name in _DEFAULT_FILES), *named]
        return cls(
            _identity(folder, tools),
            (*found, *_ALWAYS),
            tuple(one for one in files if one.is_absolute() and stat.S_ISREG(file_mode(one))),
        )

    def show(self, mounts: Mounts) -> None:
        """Show the files with the user's rules, read-only."""
        for path in self.files:
            mounts.read_only(os.path.realpath(path), path)


def _settings(git: Git) -> list[tuple[str, str]]:
    """Return the settings of the user and of the system; git inside reads those of the repository.

    The form is `SCOPE NUL KEY LF VALUE NUL`.
    """
    try:
        raw = git.ask("config", "--null", "--show-scope", "--get-regexp", _SETTINGS) or ""
    except GitError:
        return []
    fields = raw.split("\0")
    pairs = zip(fields[::2], fields[1::2], strict=False)
    entries = (entry.partition("\n") for scope, entry in pairs if scope in ("global", "system"))
    return [(key, value if divided else "true") for key, divided, value in entries]


def _identity(folder: Path, tools: Tools) -> dict[str, str]:
    """Return the name and the email that git would write into a commit; nothing without them."""
    found: dict[str, str] = {}
    for role in _ROLES:
        argv = (tools.program("git"), "var", f"GIT_{role}_IDENT")
        finished = tools.run(Command("", argv, folder, unattended(tools), _TIMEOUT, outside=True))
        match = _IDENTITY.match(finished.output.decode("utf-8", "replace"))
        if finished.passed and match is not None:
            found[f"GIT_{role}_NAME"] = match["name"]
            found[f"GIT_{role}_EMAIL"] = match["email"]
    return found
