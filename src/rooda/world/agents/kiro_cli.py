"""Kiro CLI (`kiro-cli chat`)."""

import re

from rooda.world.agents.adapter import Adapter, LastOutput
from rooda.world.agents.agent_report import Fault
from rooda.world.agents.facts import AgentFacts, SandboxNeeds, ToolPermissions, needs_flag
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.agents.faults import fault_in, is_complaint

_MOST_LINES = 30
_TROUBLE = re.compile(r"\s*(?:error: )?(?:Kiro|Amazon Q) is having trouble", re.IGNORECASE)
# Lines that the Rust runtime prints below an error: numbered causes, and the source location.
_BELOW = re.compile(r"\s+\d+: |\s*(?:Location:|Backtrace omitted|Run with |\S+\.rs:\d+\s*$|<|$)")


class Kiro(Adapter):
    """Kiro CLI. It prints only text, on both streams."""

    name = "kiro-cli"
    facts = AgentFacts(
        install="see Kiro's documentation of its CLI",
        payers={"KIRO_API_KEY": "the account of the API key"},
        otherwise="the account that `kiro-cli login` chose",
        speaks_on_stderr=True,
        advice={FailureKind.AUTH: "Run `kiro-cli login`"},
    )
    permissions = ToolPermissions(
        all_tools=("--trust-all-tools", "-a"), some_tools=("--trust-tools",)
    )
    flag_rules = (
        needs_flag("chat", write="kiro-cli chat --no-interactive"),
        needs_flag("--no-interactive", write="kiro-cli chat --no-interactive"),
    )

    # The login is in a database beside scripts that the user's shell runs at its start, so the
    # folder stays outside: in the sandbox, kiro-cli needs an API key.
    needs = SandboxNeeds(
        settings=(".kiro/settings/cli.json", ".kiro/steering"), variables=("KIRO_API_*",)
    )

    def last_words(self, printed: LastOutput) -> Fault | None:
        """Return the last error on stderr, where the assistant's answer may be too."""
        if not printed.failed:
            return None
        lines = printed.stderr.rstrip().splitlines()[-_MOST_LINES:]
        causes: list[str] = []
        while lines and _BELOW.match(lines[-1]):
            causes.insert(0, lines.pop().strip())
        if not lines or not (is_complaint(lines[-1]) or _TROUBLE.match(lines[-1])):
            return None
        return fault_in(" ".join([lines[-1].strip(), *filter(None, causes)]))


ADAPTER = Kiro()
