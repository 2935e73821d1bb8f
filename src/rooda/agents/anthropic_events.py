"""Events in the form of Anthropic's messages, which several CLIs print."""

from rooda.agents.notes import Notes
from rooda.agents.report import Tokens
from rooda.agents.values import Event, count, part, parts, text


def assistant(event: Event, notes: Notes) -> None:
    """The assistant spoke, or uses a tool. What a helper of its own says is not its answer."""
    is_helper = bool(event.get("parent_tool_use_id"))
    message = part(event, "message")
    for block in parts(message.get("content")):
        match block.get("type"):
            case "text" if not is_helper:
                notes.say(text(block.get("text")))
            case "tool_use":
                notes.uses_tool(text(block.get("name")), block.get("input"))
    if not is_helper:
        used = tokens(part(message, "usage"))
        if used.total:
            notes.context_used = used.total


def user(event: Event, notes: Notes) -> None:
    """What tools gave back; it is nobody's speech."""
    blocks = parts(part(event, "message").get("content"))
    if any(block.get("type") == "tool_result" for block in blocks):
        notes.tool_ended()


def tokens(usage: Event) -> Tokens:
    """Tokens by Anthropic's names, where what was cached is not counted as input."""
    given, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    read = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    return Tokens(given, output, read, written, total=given + output + read + written)


def read_by(usage: Event) -> int:
    """How much a model was given to read."""
    names = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return sum(count(usage.get(name)) for name in names)
