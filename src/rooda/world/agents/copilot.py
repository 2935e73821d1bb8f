"""GitHub Copilot CLI (`copilot`)."""

from typing import ClassVar

from rooda.world.agents.adapter import Adapter, LastOutput
from rooda.world.agents.agent_notes import AgentNotes
from rooda.world.agents.agent_report import Fault, Form
from rooda.world.agents.facts import AgentFacts, SandboxNeeds, ToolPermissions, rejects_flags
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.agents.faults import fault_in
from rooda.world.agents.json_events import Event, label, part, status_code, text

_LONGEST_ERROR = 2000


class Copilot(Adapter):
    """GitHub Copilot CLI."""

    name = "copilot"
    facts = AgentFacts(
        install="npm install -g @github/copilot",
        payers={
            "COPILOT_PROVIDER_BASE_URL": "the operator of that server",
            "COPILOT_PROVIDER_API_KEY": "the provider's API key, by use",
            "COPILOT_GITHUB_TOKEN": "the GitHub account of the token",
            "GH_TOKEN": "the GitHub account of the token",
            "GITHUB_TOKEN": "the GitHub account of the token",
        },
        otherwise="the GitHub account that `copilot login` chose",
        advice={
            FailureKind.AUTH: "Run `copilot` and log in with /login, or set a token that is valid",
            FailureKind.USAGE: "See `copilot --help` for its flags and models",
        },
    )
    output_flags = ("--output-format",)
    output_forms: ClassVar = {"json": Form.EVENTS}
    permissions = ToolPermissions(
        all_tools=("--allow-all", "--allow-all-tools", "--yolo"), some_tools=("--allow-tool",)
    )
    flag_rules = (
        *rejects_flags("-i", "--interactive"),
        *rejects_flags("-p", "--prompt", because="takes the prompt from the command line"),
    )

    # The login is in the user's keyring, or in config.json if there is none.
    needs = SandboxNeeds(
        settings=(".copilot/config.json", ".copilot/copilot-instructions.md"),
        environ={"COPILOT_AUTO_UPDATE": "false"},
        variables=("COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST"),
    )

    def read(self, event: Event, notes: AgentNotes) -> None:
        """Record the content of an event in the notes."""
        data = part(event, "data")
        match event.get("type"):
            case "assistant.turn_start":
                notes.begins()
                notes.asks()
            case "assistant.message" if not data.get("parentToolCallId"):
                notes.model = label(data.get("model")) or notes.model
                notes.say(text(data.get("content")))
            case "model.call_start":
                notes.model = label(data.get("model")) or notes.model
            case "tool.execution_start":
                notes.uses_tool(text(data.get("toolName")), data.get("arguments"))
            case "assistant.turn_retry":
                notes.retries(text(data.get("reason")))
            case "session.error":
                notes.fails(
                    text(data.get("message")) or text(data.get("errorType")) or "an error",
                    status_code(data.get("statusCode")),
                )
            case "session.info":
                notes.note(text(data.get("message")))
            case "result":
                _result(event, notes)

    def last_words(self, printed: LastOutput) -> Fault | None:
        """Return the error on stderr; in text form, copilot prints nothing else there."""
        return fault_in(printed.stderr.strip()[-_LONGEST_ERROR:]) if printed.failed else None


def _result(event: Event, notes: AgentNotes) -> None:
    notes.session_id = label(event.get("sessionId")) or notes.session_id
    well = event.get("exitCode") == 0 and notes.fault is None
    if not well and not notes.complaint:
        notes.fails(f"it reports exit code {event.get('exitCode')}")
    notes.ends(well=well)


ADAPTER = Copilot()
