"""Kiro CLI (`kiro-cli chat`)."""

import re

from rooda.agents.adapter import Adapter, Facts, Printed
from rooda.agents.endings import fault_in, is_complaint
from rooda.agents.report import Fault, FaultKind

_MOST_LINES = 30
_TROUBLE = re.compile(r"\s*(?:error: )?(?:Kiro|Amazon Q) is having trouble", re.IGNORECASE)
# What its runtime prints below an error: the causes, numbered, and where in the code it was.
_BELOW = re.compile(r"\s+\d+: |\s*(?:Location:|Backtrace omitted|Run with |\S+\.rs:\d+\s*$|<|$)")


class Kiro(Adapter):
    """Kiro CLI. It prints text alone, on either stream."""

    name = "kiro-cli"
    facts = Facts(
        install="see Kiro's documentation of its CLI",
        payers={"KIRO_API_KEY": "the account of the API key"},
        otherwise="the account that `kiro-cli login` chose",
        speaks_on_stderr=True,
        advice={FaultKind.AUTH: "Run `kiro-cli login`"},
    )

    def last_words(self, printed: Printed) -> Fault | None:
        """Its errors are on standard error, as is what the assistant says: the last one counts."""
        if not printed.failed:
            return None
        lines = printed.stderr.rstrip().splitlines()[-_MOST_LINES:]
        causes: list[str] = []
        while lines and _BELOW.match(lines[-1]):
            causes.insert(0, lines.pop().strip())
        if not lines or not (is_complaint(lines[-1]) or _TROUBLE.match(lines[-1])):
            return None
        return fault_in(" ".join([lines[-1].strip(), *filter(None, causes)]))
