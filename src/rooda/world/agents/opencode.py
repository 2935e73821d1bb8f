"""opencode (`opencode run`)."""

import re
from typing import ClassVar

from rooda.world.agents.adapter import Adapter, LastOutput
from rooda.world.agents.agent_notes import AgentNotes
from rooda.world.agents.agent_report import Fault, Form, Tokens, Usage
from rooda.world.agents.facts import (
    AgentFacts,
    SandboxNeeds,
    ToolPermissions,
    needs_flag,
    rejects_flags,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.agents.faults import fault_in, last_plain_line
from rooda.world.agents.json_events import Event, amount, count, label, part, status_code, text

_HELP = "opencode run ["
_ERROR = re.compile(r"Error: (.+)")
_MODEL = re.compile(r"\A\s*> \S+ · (\S{1,200})$", re.MULTILINE)
_CUT_SHORT = ("length", "content-filter", "error")
_NAMELESS = ("", "APIError", "UnknownError")  # generic error names
_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,9})?")


class Opencode(Adapter):
    """opencode."""

    name = "opencode"
    facts = AgentFacts(
        install="npm install -g opencode-ai",
        nesting=("OPENCODE",),
        payers={
            "OPENCODE_CONFIG_CONTENT": "the provider in this configuration",
            "ANTHROPIC_API_KEY": "the API key, if the model is Anthropic's",
            "OPENAI_API_KEY": "the API key, if the model is OpenAI's",
            "GEMINI_API_KEY": "the API key, if the model is Google's",
            "OPENROUTER_API_KEY": "the API key, if OpenRouter provides the model",
        },
        otherwise="the provider that `opencode auth login` chose",
        tells_cost=True,
        advice={
            FailureKind.AUTH: "Run `opencode auth login`, or set the key of the model's provider",
            FailureKind.USAGE: "See `opencode models` for the models that it knows",
        },
    )
    output_flags = ("--format",)
    output_forms: ClassVar = {"json": Form.EVENTS}
    permissions = ToolPermissions(all_tools=("--auto", "--dangerously-skip-permissions"))
    flag_rules = (
        needs_flag("run", write="opencode run"),
        *rejects_flags("-i", "--interactive"),
    )

    needs = SandboxNeeds(
        credentials=(".local/share/opencode/auth.json",),
        settings=tuple(
            f".config/opencode/{name}"
            for name in ("opencode.json", "opencode.jsonc", "config.json", "AGENTS.md")
        ),
        environ={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
        variables=(
            *("OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "OPENROUTER_API_KEY"),
            *("GOOGLE_GENERATIVE_AI_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY"),
            *("DEEPSEEK_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION"),
        ),
    )

    def read(self, event: Event, notes: AgentNotes) -> None:
        """Record the content of an event in the notes."""
        notes.session_id = label(event.get("sessionID")) or notes.session_id
        it = part(event, "part")
        match event.get("type"):
            case "step_start":
                notes.begins()
            case "text":
                notes.say(text(it.get("text")))
            case "tool_use":
                state = part(it, "state")
                about = part(state, "input") or text(state.get("title"))
                notes.uses_tool(text(it.get("tool")), about)
            case "step_finish":
                _step(it, notes)
            case "error":
                _error(part(event, "error"), notes)

    def text_usage(self, printed: LastOutput) -> Usage:
        """Return the model name in the first line of stderr."""
        model = _MODEL.search(printed.beginning)
        return Usage(model[1] if model else None)

    def last_words(self, printed: LastOutput) -> Fault | None:
        """Return the error in the last line of stderr; the lines before it are tool output."""
        if not printed.failed:
            return None
        if printed.beginning.lstrip().startswith(_HELP):
            return Fault(FailureKind.USAGE, "it printed its help, so it rejected a flag")
        found = _ERROR.match(last_plain_line(printed.stderr))
        return fault_in(found[1]) if found else None


def _step(it: Event, notes: AgentNotes) -> None:
    used = part(it, "tokens")
    cache = part(used, "cache")
    given, output = count(used.get("input")), count(used.get("output"))
    reasoning = count(used.get("reasoning"))
    read, written = count(cache.get("read")), count(cache.get("write"))
    total = count(used.get("total")) or given + output + reasoning + read + written
    notes.adds_tokens(Tokens(given, output, read, written, reasoning, total))
    notes.adds_cost(amount(it.get("cost")))
    notes.context_used = total
    notes.tool_ended()  # the next event belongs to another request
    reason = it.get("reason")
    if reason in _CUT_SHORT:
        notes.fails(f"its answer was cut short ({reason})")
    if reason != "tool-calls":
        notes.ends(well=reason not in _CUT_SHORT)


def _error(error: Event, notes: AgentNotes) -> None:
    data = part(error, "data")
    name = text(error.get("name"))
    words = text(data.get("message")) or name or "an error"
    if name not in _NAMELESS and name not in words:
        words = f"{name}: {words}"
    after = text(part(data, "responseHeaders").get("retry-after"))
    seconds = float(after) if _SECONDS.fullmatch(after) else None
    notes.fails(words, status_code(data.get("statusCode")), retry_after=seconds)
    notes.ends(well=False)


ADAPTER = Opencode()
