"""What the engine works with, built for tests: one place to change when its classes change."""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rooda.base.event import Event
from rooda.base.problems import BUILTIN, Origin
from rooda.loop.services import Execute, Services
from rooda.plan.command import Agent, AgentCommand
from rooda.plan.layers import Valued
from rooda.plan.plan import Plan
from rooda.plan.prompts.parts import PHASES, Part, TextPart
from rooda.plan.resolve import Values
from rooda.plan.settings.setting import Setting
from rooda.world.process.interrupts import Interrupts
from support.states import state_of

Settings = Mapping[Setting[Any], Any]
Phases = Mapping[str, tuple[Part, ...]]


def built_values(settings: Settings, origin: Origin = BUILTIN) -> Values:
    """Return the settings as if a layer had given them."""
    return Values({row.key: Valued(value, origin, row.field) for row, value in settings.items()})


def built_plan(
    folder: Path,
    settings: Settings,
    *,
    command: str = "agent --flag",
    adapter: str | None = None,
    phases: Phases | None = None,
    environ: Mapping[str, str] | None = None,
) -> Plan:
    """Return the plan of the procedure `work` in a folder; each phase has its own name as text."""
    chosen = AgentCommand(command, "cli: --ai-cmd", BUILTIN, "--ai-cmd", adapter)
    return Plan(
        procedure="work",
        phases=dict(phases or {name: (Part(TextPart(f"{name}!")),) for name in PHASES}),
        contexts=(),
        agents=(Agent.of(chosen, tuple(shlex.split(command))),),
        values=built_values(settings),
        workspace=folder,
        state=state_of(folder),
        working_dir=folder,
        environ=dict(environ or {}),
    )


def built_services(
    listener: Callable[[Event], None], interrupts: Interrupts, execute: Execute, **more: Any
) -> Services:
    """Return services whose agent is the function `execute`."""
    return Services(listener, interrupts, execute, **more)
