"""Checks of the configuration that need no look at the files and programs it names."""

import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rooda.base.lookup import did_you_mean
from rooda.base.paths import anchored, file_mode
from rooda.base.problems import Problem, Severity, Tier
from rooda.plan.command import Agent
from rooda.plan.layers import FILE_RUN, Layer, Layers
from rooda.plan.prompts.parts import PHASES
from rooda.plan.resolve import Values, resolve
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    IDLE_TIMEOUT,
    ITERATION_MODE,
    ITERATION_TIMEOUT,
    MAX_COST,
    MAX_DURATION,
    MAX_ITERATIONS,
    MAX_TOKENS,
    NOTIFY_ON,
    NOTIFY_URLS,
    SIGNALS_FAILURE,
    SIGNALS_SUCCESS,
    ZERO_MEANS_UNLIMITED,
)

_UNKNOWN = "Unknown procedure"
_PROMPT_ENDING = ".md"


def unknown_procedure(name: str, layers: Layers, commands: frozenset[str]) -> Problem:
    """Return the problem that no config file defines the procedure."""
    if name in commands:
        return Problem(f"{name!r} is a command", f"Put it first: rooda {name}", title=_UNKNOWN)
    known = [*layers.names_to_run(), *commands]
    what = "procedure or command" if commands else "procedure"
    return Problem(
        f"there is no {what} named {name!r}",
        did_you_mean(name, known) or "`rooda list` shows the procedures",
        title=_UNKNOWN,
    )


def prompt_file_instead(name: str, folder: Path) -> Problem | None:
    """Return the problem that a prompt file was given in place of a procedure, if it was."""
    is_file = stat.S_ISREG(file_mode(anchored(folder, name)))
    if not is_file and not name.lower().endswith(_PROMPT_ENDING):
        return None
    command = f"rooda {FILE_RUN} {shlex.quote(name)}"
    message = f"{name!r} is a file, not a procedure"
    advice = f"To run it as a prompt, write: {command}"
    if not is_file:
        message = f"there is no procedure and no file named {name!r}"
        advice = f"Write the prompt into that file, then: {command}"
    return Problem(message, advice, title=_UNKNOWN)


def check_procedures(
    layers: Layers, commands: frozenset[str], given: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """Yield the user's procedures that lack a phase (besides `given` ones) or hide a command."""
    names = layers.names_to_run()
    for layer in layers.files():
        for name, procedure in layer.procedures.items():
            if name not in names:
                continue
            field = f"procedures.{name}"
            have = {*layers.phases(name), *given.get(name, ())}
            missing = [phase for phase in PHASES if phase not in have]
            if missing:
                yield Problem.at(
                    procedure.origin,
                    field,
                    f"the procedure {name!r} lacks {', '.join(missing)}",
                    f"Add `{missing[0]}: FILE` to it; all of {', '.join(PHASES)} are needed",
                )
            if name in commands:
                yield Problem.at(
                    procedure.origin,
                    field,
                    f"the procedure {name!r} is also the name of a command",
                    f"Run it with `rooda run {name}`, or rename it",
                    Severity.WARNING,
                )


def check_zero_counts(layers: Layers, procedure: str) -> Iterator[Problem]:
    """Yield a problem for each maximum of 0 that the policy does not read as unlimited."""
    places = [(procedure, layer.loop) for layer in (layers.cli, layers.environment)]
    for layer in layers.files():
        places.append((procedure, layer.loop))
        places += [(name, one.values) for name, one in layer.procedures.items()]
    for name, values in places:
        valued = values.get(MAX_ITERATIONS.key)
        if valued is None or valued.value != 0:
            continue
        if not resolve(layers, name)[ZERO_MEANS_UNLIMITED]:
            yield valued.problem("must be 1 or more, not 0", MAX_ITERATIONS.fix)


def check_signal_words(values: Values) -> Iterator[Problem]:
    """Yield a problem if success and failure have the same word."""
    word = values[SIGNALS_SUCCESS]
    if word is not None and word == values[SIGNALS_FAILURE]:
        yield Problem.at(
            values.origin(SIGNALS_SUCCESS),
            values.field(SIGNALS_SUCCESS),
            f"{word!r} is the word for success and for failure",
            "Choose two words",
        )


def warn_of_iterations(cli: Layer, values: Values) -> Iterator[Problem]:
    """Warn of a number beside --unlimited, and of a run without any limit."""
    mode, count = cli.loop.get(ITERATION_MODE.key), cli.loop.get(MAX_ITERATIONS.key)
    if mode is not None and mode.value == "unlimited" and count is not None:
        yield mode.problem(
            f"{count.field} and {mode.field} were both given; the number wins",
            f"Drop {mode.field}",
            Severity.WARNING,
        )
    clocks: tuple[Setting[Any], ...] = (ITERATION_TIMEOUT, IDLE_TIMEOUT, MAX_DURATION)
    bounds = (*clocks, MAX_COST, MAX_TOKENS)
    if values.iterations.maximum is None and all(values[bound] is None for bound in bounds):
        yield Problem(
            "the run is unlimited and has no clock: a hung agent would block it for ever",
            "Set --iteration-timeout, --idle-timeout or --max-duration",
            severity=Severity.WARNING,
        )


def warn_of_agents(agents: Sequence[Agent], values: Values) -> Iterator[Problem]:
    """Warn of a budget that rooda can't check, because the agent does not report its usage."""
    for agent in agents:
        program = agent.program
        tells_tokens = program.prints_events
        tells_cost = tells_tokens and program.adapter.facts.tells_cost
        budgets: tuple[tuple[Setting[Any], bool, str], ...] = (
            (MAX_COST, tells_cost, "costs"),
            (MAX_TOKENS, tells_tokens, "uses"),
        )
        for setting, tells, word in budgets:
            if values[setting] is not None and not tells:
                untold = f"{agent.name} does not tell what it {word}"
                yield Problem.at(
                    values.origin(setting),
                    values.field(setting),
                    f"{untold}, so {setting.key} can't end the run",
                    "Set max_duration as well, or choose an agent that reports its cost "
                    "(docs/reference/agents.md)",
                    Severity.WARNING,
                )


# Which messages a run sends, and whether they can be sent (`notify`).


INSTALL = "pip install 'rooda[notify]'"


def check_notify(values: Values) -> Iterator[Problem]:
    """Warn of addresses that can't get a message, because the extra is not installed."""
    urls, moments = values[NOTIFY_URLS], values[NOTIFY_ON]
    if urls and moments and find_spec("apprise") is None:
        yield Problem.at(
            values.origin(NOTIFY_URLS),
            values.field(NOTIFY_URLS),
            "notifications to services need a package that is not installed: apprise. Instead, "
            "rooda shows them on the desktop, or rings the bell of the terminal",
            f"Install it: {INSTALL}",
            Severity.WARNING,
        )


def moments_of(values: Values) -> tuple[str, ...]:
    """Return the moments to tell about; none if the user has set neither addresses nor moments."""
    is_chosen = values.origin(NOTIFY_ON).tier is not Tier.BUILTIN
    moments = values[NOTIFY_ON] or ()
    return moments if values[NOTIFY_URLS] or is_chosen else ()
