"""Kiro CLI (`kiro-cli chat`)."""

from rooda.agents.adapter import Adapter, Facts, Printed
from rooda.agents.endings import fault_in, is_complaint, last_line
from rooda.agents.report import Fault, FaultKind


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
        """Its errors are on standard error, as is what the assistant says: the last line counts."""
        line = last_line(printed.stderr)
        return fault_in(line) if printed.failed and is_complaint(line) else None
