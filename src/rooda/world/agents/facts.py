"""Facts about an agent CLI that its output does not show, and their effect in an environment.

Messages name environment variables and never show their values.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from rooda.world.agents.failure_kinds import FailureKind

# What an agent CLI gets in rooda's sandbox: its files below HOME, and its variables.
#
# HOME is a private folder there. Session data and caches of a CLI live in that folder, and are
# kept. The rest comes from the user's own HOME: credentials can be written, because a CLI renews
# its tokens; settings can only be read, so that an agent cannot change what the CLI does outside.
# Folders with code (plugins, hooks, extensions, MCP servers) and the user's sessions stay outside.


class SandboxNeeds(Struct, frozen=True):
    """What one CLI needs in the sandbox.

    `credentials` and `settings` are paths below HOME; what exists is mounted, `credentials`
    writable and `settings` read-only. `environ` is set inside. `variables` are names, or patterns
    with `*`, of the user's variables that pass in, such as API keys.
    """

    credentials: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()


# How programs reach the network; programs read some of these names in lower case, too.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
# Files and folders with certificates, such as that of a company; programs inside read them.
CERTIFICATE_VARIABLES: Final = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
    *("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT"),
)
NETWORK_VARIABLES: Final = (
    *_PROXIES,
    *(name.lower() for name in _PROXIES),
    *CERTIFICATE_VARIABLES,
    "NODE_USE_SYSTEM_CA",
)


_OFF = ("", "0", "false", "no", "off")


class AgentFacts(Struct, frozen=True):
    """What rooda knows about a CLI apart from its output.

    `install` is a command or a sentence that says how to install the CLI.
    `nesting` lists the variables by which the CLI detects that it runs inside another agent; some
    CLIs then refuse to start. `payers` maps the variables that select the paying account to a
    description of that account; `otherwise` describes the account if none of them is set.
    `tells_cost`: the output contains the cost in dollars. `speaks_on_stderr`: the assistant's
    answer may also be on standard error. `advice` tells the user what to do about a failure.
    """

    install: str
    nesting: tuple[str, ...] = ()
    payers: Mapping[str, str] = field(default_factory=dict)
    otherwise: str = "its own login"
    tells_cost: bool = False
    speaks_on_stderr: bool = False
    advice: Mapping[FailureKind, str] = field(default_factory=dict)


class Account(Struct, frozen=True):
    """The account that pays for a CLI.

    `variables` are the variables that are set and select the account, each with a description;
    `otherwise` describes the account that pays without such variables.
    """

    variables: tuple[tuple[str, str], ...]
    otherwise: str

    @property
    def text(self) -> str:
        """The account as a phrase."""
        if not self.variables:
            return self.otherwise
        return "; ".join(f"{name} is set: {meaning}" for name, meaning in self.variables)

    def to_json(self) -> dict[str, object]:
        """Return the names of the variables, and the account as a phrase."""
        return {"variables": [name for name, _ in self.variables], "text": self.text}


def is_enabled(environ: Mapping[str, str], name: str) -> bool:
    """Return whether a variable is set to a value other than `0`, `false`, `no`, `off` or ""."""
    return environ.get(name, "").strip().lower() not in _OFF


def account_of(facts: AgentFacts, environ: Mapping[str, str]) -> Account:
    """Return the account that pays for a CLI in this environment."""
    found = tuple(
        (name, meaning) for name, meaning in facts.payers.items() if is_enabled(environ, name)
    )
    return Account(found, facts.otherwise)


def passed_on(
    facts: AgentFacts, environ: Mapping[str, str], kept: Iterable[str] = ()
) -> dict[str, str]:
    """Return the environment without the variables that `dropped` lists."""
    gone = dropped(facts, environ, kept)
    return {name: value for name, value in environ.items() if name not in gone}


def dropped(
    facts: AgentFacts, environ: Mapping[str, str], kept: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the variables that rooda removes, because the CLI may refuse to run nested.

    `kept` are the variables that the configuration sets; they are never removed.
    """
    wanted = set(kept)
    return tuple(name for name in facts.nesting if name in environ and name not in wanted)


# Flags of an agent's command line, and the rules by which `rooda doctor` checks them.
#
# The rules state what a CLI needs to run unattended: it has to read its prompt from standard input
# and use its tools without asking.


_SHORT_FLAG = re.compile(r"-[A-Za-z]")
_SHORT_FLAGS = re.compile(r"-[A-Za-z]+")
_ON_STDIN = "the prompt comes on standard input"
ASKS_FIRST = "it asks before it uses a tool, and in a run no user can answer: the tool is denied"
OPENS_SCREEN = "opens its interactive screen, which needs a user at a terminal"


def flag_value(words: Sequence[str], *names: str) -> str | None:
    """Return the last value of a flag, given as `--flag value` or `--flag=value`, or None."""
    found = None
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in names and equals:
            found = value
        elif word in names and place + 1 < len(words):
            found = words[place + 1]
    return found


def has_flag(words: Sequence[str], *names: str) -> bool:
    """Return whether a command line has one of these flags."""
    return any(word.partition("=")[0] in names for word in words)


def without_flags(
    words: Sequence[str], *names: str, switches: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return a command line without flags that have a value, and without switches."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if word == "--":
            return (*kept, word, *rest)
        if name in names and not equals:
            next(rest, None)
        elif name not in (*names, *switches):
            kept.append(word)
    return tuple(kept)


def matches(words: Sequence[str], pattern: str) -> bool:
    """Return whether a command line has a flag.

    The pattern is `--flag`, `--flag=value`, `-f` (which also matches `-pf`), or `*text` for text
    anywhere in a word.
    """
    if pattern.startswith("*"):
        return any(pattern[1:] in word for word in words)
    name, equals, value = pattern.partition("=")
    if equals:
        return flag_value(words, name) == value
    if has_flag(words, name):
        return True
    is_short = _SHORT_FLAG.fullmatch(name) is not None
    return is_short and any(_SHORT_FLAGS.fullmatch(word) and name[1] in word for word in words)


class ToolPermissions(Struct, frozen=True):
    """Patterns of the flags that let a CLI use all or some of its tools without asking.

    `otherwise` describes the effect without these flags.
    """

    all_tools: tuple[str, ...] = ()
    some_tools: tuple[str, ...] = ()
    otherwise: str = ASKS_FIRST

    def missing_flag(self, words: Sequence[str]) -> str:
        """Return the flag to add so that the CLI may use all its tools, or "" if it already may."""
        if not self.all_tools or any(matches(words, flag) for flag in self.all_tools):
            return ""
        return self.all_tools[0]


class CommandLine(Struct, frozen=True):
    """A command line from the agent's program on, its environment, and whether it runs as root."""

    words: Sequence[str]
    environ: Mapping[str, str]
    is_root: bool = False


class FlagRule(Struct, frozen=True):
    """A mistake in a command line: how to detect it, its effect, and how to correct it.

    `is_fatal`: the CLI refuses to start.
    """

    topic: str
    is_broken: Callable[[CommandLine], bool]
    text: str
    advice: str
    is_fatal: bool = False


def needs_flag(*flags: str, write: str) -> FlagRule:
    """Return the rule that requires one of these words, so that the CLI opens no screen."""

    def is_missing(line: CommandLine) -> bool:
        return not any(matches(line.words, flag) for flag in flags)

    return FlagRule(
        "prompt", is_missing, f"without {flags[0]} it {OPENS_SCREEN}", f"Write `{write}`"
    )


def rejects_flags(*flags: str, because: str = OPENS_SCREEN) -> tuple[FlagRule, ...]:
    """Return the rules that forbid these flags; `because` describes the effect of a flag."""
    return tuple(_rejects(flag, because) for flag in flags)


def _rejects(flag: str, because: str) -> FlagRule:
    def is_there(line: CommandLine) -> bool:
        return has_flag(line.words, flag)

    return FlagRule("prompt", is_there, f"{flag} {because}", f"Leave {flag} out: {_ON_STDIN}")


def _adds_words(line: CommandLine) -> bool:
    return bool(flag_value(line.words, "-p", "--prompt"))


# For CLIs that join the value of -p and the prompt from standard input.
ADDS_WORDS = FlagRule(
    "prompt",
    _adds_words,
    "-p adds its words to every prompt",
    f"Leave -p out: {_ON_STDIN}",
)
