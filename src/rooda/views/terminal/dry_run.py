"""The dry run: settings with their origins, checks, and the assembled prompt."""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from rooda.base.controls import clean
from rooda.base.problems import Problem, Severity, Tier, errors, in_order, warnings
from rooda.base.secrets.sensitive import without_secret_values
from rooda.loop.note_delivery import prompt_with_notes
from rooda.plan.plan import Plan
from rooda.plan.prepare import Prepared
from rooda.plan.settings.settings import AI_CMD, AI_CMD_ALIAS, ENV, ITERATION_MODE, MAX_ITERATIONS
from rooda.world.agents.facts import account_of, dropped
from rooda.world.state.user_notes import waiting_notes

_RULE = "─" * 40
_SHOWN_ABOVE = (AI_CMD, AI_CMD_ALIAS, ITERATION_MODE, MAX_ITERATIONS)


def render(prepared: Prepared, command: Sequence[str], resumed: str = "") -> str:
    """Return the whole report; `command` is the command line that would start the run.

    `resumed` says which earlier run would go on, if there is one.
    """
    lines = [f"=== Dry-Run: {clean(prepared.request.name)} ===", ""]
    lines += [clean(resumed), ""] if resumed else []
    lines.append("Configuration:")
    lines += [f"  {line}" for line in _configuration(prepared)]
    lines += ["", "Validation:", *_validation(prepared), ""]
    if prepared.valid and prepared.plan is not None:
        lines += [*_prompt(prepared.plan), "", _ready(command)]
    else:
        lines.append("Error: Dry-run validation failed")
    return "\n".join(lines) + "\n"


def _configuration(prepared: Prepared) -> Iterator[str]:
    """Yield the lines that are always there, and those of the settings that the user has set."""
    command = prepared.command
    if command is None:
        yield "AI Command: none"
    else:
        text = clean(without_secret_values(command.text))
        yield f"AI Command: {text} ({clean(command.provenance)})"
    iterations = prepared.values.iterations
    maximum = "unlimited" if iterations.maximum is None else iterations.maximum
    title = "Iterations" if iterations.once else "Max Iterations"
    yield f"{title}: {maximum} ({iterations.origin})"
    values = prepared.values
    shown = [setting for setting in values if setting not in _SHOWN_ABOVE]
    for setting in sorted(shown, key=lambda setting: not setting.always_in_dry_run):
        origin = values.origin(setting)
        if setting.always_in_dry_run or origin.tier is not Tier.BUILTIN:
            text = clean(without_secret_values(setting.show(values[setting])))
            yield f"{setting.title}: {text} ({origin})"
    yield from _accounts(prepared.plan) if prepared.plan is not None else ()


def _accounts(plan: Plan) -> Iterator[str]:
    """Yield which account pays, if a variable decides that. The variable's value stays secret."""
    meant: Mapping[str, str | None] = plan.values[ENV]
    for agent in plan.agents:
        facts = agent.program.adapter.facts
        account = account_of(facts, plan.environ_of(agent))
        if account.variables:
            yield f"Account of {clean(agent.name)}: {account.text}"
        if gone := dropped(facts, plan.environ, meant):
            yield f"Not passed on to {clean(agent.name)}: {', '.join(gone)}"


def _validation(prepared: Prepared) -> Iterator[str]:
    for problem in errors(in_order(prepared.problems)):
        yield from _problem("✗", problem)
    for check in prepared.checks:
        yield f"  {'✓' if check.ok else '✗'} {clean(check.text)}"
        yield from (f"    {clean(detail)}" for detail in check.details)
    for problem in warnings(in_order(prepared.problems)):
        yield from _problem("!", problem)


def _problem(mark: str, problem: Problem) -> Iterator[str]:
    place = f"{problem.place}: " if problem.place else ""
    title = f"{problem.title}: " if not place and problem.severity is Severity.ERROR else ""
    yield f"  {mark} {clean(place or title)}{clean(problem.message)}"
    if problem.suggestion:
        yield f"    {clean(problem.suggestion)}"


def _prompt(plan: Plan) -> Iterator[str]:
    prompt, _ = prompt_with_notes(plan, waiting_notes(plan.state))
    size = len(prompt.encode("utf-8", "surrogateescape"))
    yield f"Assembled Prompt ({size:,} bytes):"
    yield from (_RULE, clean(prompt.rstrip("\n")), _RULE)


def _ready(command: Sequence[str]) -> str:
    return f"Dry-run complete. Ready to execute: {shlex.join(map(without_secret_values, command))}"
