"""How four vendors put the same replies on the wire."""

from real_agents.wire import chat, generate_content, messages, responses
from real_agents.wire.dialect import Dialect

DIALECTS: tuple[Dialect, ...] = (
    messages.DIALECT,
    responses.DIALECT,
    generate_content.DIALECT,
    chat.DIALECT,
)
