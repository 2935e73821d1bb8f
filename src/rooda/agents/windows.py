"""How large the context of a model is, by the beginning of its name."""

# The longest beginning that fits counts.
_WINDOWS = {
    "claude": 200_000,
    "gemini": 1_048_576,
    "gpt-4.1": 1_047_576,
    "gpt-4o": 128_000,
    "gpt-5": 272_000,
    "o3": 200_000,
    "o4": 200_000,
    "qwen3-coder": 262_144,
    "qwen3-coder-plus": 1_000_000,
    "qwen3-coder-flash": 1_000_000,
    "kimi-k2": 262_144,
    "grok-code": 256_000,
    "deepseek": 128_000,
    "glm-4.5": 131_072,
    "glm-4.6": 200_000,
}
_MILLION = 1_000_000


def window_of(model: str) -> int | None:
    """The tokens that fit into the model's context; None where we don't know it."""
    name = model.rpartition("/")[2].lower()
    if name.endswith("[1m]"):
        return _MILLION
    known = [start for start in _WINDOWS if name.startswith(start)]
    return _WINDOWS[max(known, key=len)] if known else None


def percent(used: int, window: int) -> int:
    """How full a context is; more than full is full."""
    return min(100, round(100 * used / window))
