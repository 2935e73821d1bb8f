"""Any command that we know nothing of: text, and what seed 000's matrix makes of it."""

from rooda.agents.adapter import Adapter, Facts


class Plain(Adapter):
    """Text on either stream. It is never said to have failed but by its exit and its signals."""

    name = "text"
    facts = Facts(install="", otherwise="whatever it was set up with", speaks_on_stderr=True)
