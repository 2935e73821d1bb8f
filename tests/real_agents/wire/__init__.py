"""The wire formats in which four vendors send the same replies."""

from real_agents.wire import chat, generate_content, messages, responses
from real_agents.wire.dialect import Dialect

DIALECTS: tuple[Dialect, ...] = (
    messages.DIALECT,
    responses.DIALECT,
    generate_content.DIALECT,
    chat.DIALECT,
)
