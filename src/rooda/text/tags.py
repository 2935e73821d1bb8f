"""The tags by which an agent signals."""


def promise_tag(word: str) -> str:
    """The tag as the agent prints it."""
    return f"<promise>{word}</promise>"
