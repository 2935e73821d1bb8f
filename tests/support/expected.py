"""What the transcripts of agent CLIs amount to, worked out by hand from what was printed."""

from typing import NamedTuple

from rooda.loop.outcome import Verdict
from rooda.world.agents.failure_kinds import FailureKind
from support.transcripts import Transcript

SUCCESS, FAILURE = "SUCCESS", "FAILURE"
UNKNOWN = ("aider", "kimi")  # commands without an adapter

# -- what each amounts to --------------------------------------------------------------------


class Outcome(NamedTuple):
    """How the loop has to take it; the exit codes are the programs' own, and several lie."""

    verdict: Verdict
    kind: FailureKind | None = None
    promise: str | None = None


OUTCOMES = {
    "plain": Outcome(Verdict.CONTINUE),
    "success": Outcome(Verdict.COMPLETE, promise=SUCCESS),
    "failure": Outcome(Verdict.FAILURE, FailureKind.SIGNAL, FAILURE),
    "tool": Outcome(Verdict.COMPLETE, promise=SUCCESS),
    "toolecho": Outcome(Verdict.CONTINUE),  # a tool says it, the agent doesn't
    "autherror": Outcome(Verdict.ABORT, FailureKind.AUTH),
    "ratelimit": Outcome(Verdict.LIMITED, FailureKind.OVERLOADED),  # by the minute: an outage
    "usagelimit": Outcome(Verdict.LIMITED, FailureKind.LIMIT),
    "overloaded": Outcome(Verdict.LIMITED, FailureKind.OVERLOADED),
    "ctxlimit": Outcome(Verdict.FAILURE, FailureKind.CONTEXT),
}
# Killed before they said anything of it.
CUT_OFF = Outcome(Verdict.FAILURE, FailureKind.CRASH)
EXCEPTIONS = {
    "claude-autherror": CUT_OFF,
    "claude-autherror-stream": CUT_OFF,
    "opencode-usagelimit": CUT_OFF,
    "opencode-usagelimit-stream": CUT_OFF,
    # Commands without an adapter: rooda knows only exit code 0 and that there is no promise.
    "aider-autherror": Outcome(Verdict.CONTINUE),
    "kimi-autherror": Outcome(Verdict.CONTINUE),
}


def outcome_of(one: Transcript) -> Outcome:
    return EXCEPTIONS.get(one.name) or OUTCOMES[one.scenario]


# -- what each tells in numbers --------------------------------------------------------------


class Numbers(NamedTuple):
    """`tokens` are input, output and total; `context` is in percent."""

    model: str | None = None
    turns: int | None = None
    tokens: tuple[int, int, int] | None = None
    cost: float | None = None
    context: int | None = None


NONE = (0, 0, 0)
OPUS, CODEX, GEMINI, QWEN, GPT = (
    "claude-opus-4-8[1m]",
    "gpt-5-codex",
    "gemini-2.5-pro",
    "fake-model",
    "gpt-5.2",
)
FAILED_CLAUDE = Numbers(OPUS, 1, NONE, 0.0)
FAILED_GEMINI = Numbers(GEMINI, None, NONE)
FAILED_CODEX = Numbers()  # its events name no model
FAILED_QWEN = Numbers(QWEN, 1, NONE)
FAILED_COPILOT = Numbers(GPT, 1)
# Whatever is not here tells nothing.
NUMBERS = {
    "claude-plain-stream": Numbers(OPUS, 1, (19112, 34, 22479), 0.10446475, 2),
    "claude-success-stream": Numbers(OPUS, 1, (19112, 39, 22484), 0.10458975, 2),
    "claude-success-json": Numbers(OPUS, 1, (19112, 39, 22484), 0.10458975, 2),
    "claude-failure-stream": Numbers(OPUS, 1, (19112, 36, 22481), 0.10451475, 2),
    "claude-tool-stream": Numbers(OPUS, 2, (38349, 55, 45070), 0.2092295, 2),
    "claude-tool-json": Numbers(OPUS, 2, (38349, 55, 45070), 0.2092295),
    "claude-tool-json-noskip": Numbers(OPUS, 2, (38348, 55, 45069), 0.2092245),
    "claude-toolecho-stream": Numbers(OPUS, 2, (38327, 53, 45046), 0.2090695, 2),
    "claude-autherror-stream-retry1": FAILED_CLAUDE,
    "claude-autherror-stream": Numbers(OPUS),  # cut off: the numbers come with the result
    "claude-ctxlimit-stream": FAILED_CLAUDE,
    "claude-overloaded-stream-retry1": FAILED_CLAUDE,
    "claude-ratelimit-stream-retry1": FAILED_CLAUDE,
    "claude-ratelimit-stream": FAILED_CLAUDE,
    "claude-usagelimit-json-j": Numbers(None, 1, NONE, 0.0),
    "codex-plain-stream": Numbers(None, 1, (9868, 34, 9902)),
    "codex-success-stream": Numbers(None, 1, (9868, 39, 9907)),
    "codex-success-json": Numbers(None, 1, (9868, 39, 9907)),
    "codex-failure-stream": Numbers(None, 1, (9868, 36, 9904)),
    "codex-tool-stream": Numbers(None, 2, (19916, 55, 19971)),
    "codex-tool-json": Numbers(None, 2, (19916, 55, 19971)),
    "codex-toolecho-stream": Numbers(None, 2, (19919, 53, 19972)),
    "codex-autherror-stream": FAILED_CODEX,
    "codex-ctxlimit-stream": FAILED_CODEX,
    "codex-ratelimit-stream": FAILED_CODEX,
    "codex-usagelimit-stream": FAILED_CODEX,
    # As text it tells of tokens in one number, what was cached left out.
    "codex-plain": Numbers(CODEX, None, (0, 0, 7680)),
    "codex-success": Numbers(CODEX, None, (0, 0, 7685)),
    "codex-failure": Numbers(CODEX, None, (0, 0, 7682)),
    "codex-tool": Numbers(CODEX, None, (0, 0, 15527)),
    "codex-toolecho": Numbers(CODEX, None, (0, 0, 15528)),
    "codex-autherror": Numbers(CODEX),
    "codex-ctxlimit": Numbers(CODEX),
    "codex-overloaded": Numbers(CODEX),
    "codex-ratelimit": Numbers(CODEX),
    "codex-usagelimit": Numbers(CODEX),
    "gemini-plain-stream": Numbers(GEMINI, 1, (12243, 34, 12284), None, 1),
    "gemini-success-stream": Numbers(GEMINI, 1, (12243, 39, 12289), None, 1),
    "gemini-success-json": Numbers(GEMINI, 1, (12243, 39, 12289), None, 1),
    "gemini-failure-stream": Numbers(GEMINI, 1, (12243, 36, 12286), None, 1),
    "gemini-tool-stream": Numbers(GEMINI, 2, (24625, 55, 24694)),
    "gemini-tool-json": Numbers(GEMINI, 2, (24625, 55, 24694)),
    "gemini-toolecho-stream": Numbers(GEMINI, 2, (24621, 53, 24688)),
    "gemini-autherror-stream": FAILED_GEMINI,
    "gemini-ctxlimit-stream": FAILED_GEMINI,
    "gemini-ratelimit-stream": FAILED_GEMINI,
    "gemini-usagelimit-stream": FAILED_GEMINI,
    "opencode-plain-stream": Numbers(None, 1, (7713, 27, 7769), 0.023649),
    "opencode-success-stream": Numbers(None, 1, (7713, 32, 7774), 0.023724),
    "opencode-success-json": Numbers(None, 1, (7713, 32, 7774), 0.023724),
    "opencode-failure-stream": Numbers(None, 1, (7713, 29, 7771), 0.023679),
    # It tells them step by step.
    "opencode-tool-stream": Numbers(None, 2, (15517, 41, 15616), 0.047376),
    "opencode-tool-json": Numbers(None, 2, (15517, 41, 15616), 0.047376),
    "opencode-toolecho-stream": Numbers(None, 2, (15520, 39, 15617), 0.047355),
    "opencode-autherror-stream": Numbers(),
    "opencode-ctxlimit-stream": Numbers(),
    "opencode-ratelimit-stream": Numbers(),
    "opencode-usagelimit-stream": Numbers(),
    "qwen-plain-stream": Numbers(QWEN, 1, (29731, 68, 29799)),
    "qwen-success-stream": Numbers(QWEN, 1, (29737, 78, 29815)),
    "qwen-success-json": Numbers(QWEN, 1, (29737, 78, 29815)),
    "qwen-failure-stream": Numbers(QWEN, 1, (29734, 72, 29806)),
    "qwen-tool-stream": Numbers(QWEN, 2, (39507, 55, 39562)),
    "qwen-tool-json": Numbers(QWEN, 2, (39507, 55, 39562)),
    "qwen-toolecho-stream": Numbers(QWEN, 2, (39535, 53, 39588)),
    "qwen-autherror-stream": FAILED_QWEN,
    "qwen-ctxlimit-stream": FAILED_QWEN,
    "copilot-plain-stream": Numbers(GPT, 1),
    "copilot-success-stream": Numbers(GPT, 1),
    "copilot-tool-stream": Numbers(GPT, 2),
    "copilot-toolecho-stream": Numbers(GPT, 2),
    "copilot-autherror-stream": FAILED_COPILOT,
    "copilot-ratelimit-stream": FAILED_COPILOT,
}


def has_session(one: Transcript) -> bool:
    """Every event names it, and codex as text too."""
    speaks = one.form != "text" and bool(one.stdout)
    return one.cli not in UNKNOWN and (speaks or one.cli == "codex")


def numbers_of(one: Transcript) -> Numbers:
    text = {"opencode": Numbers("fake-model")} if one.form == "text" else {}
    return NUMBERS.get(one.name) or text.get(one.cli, Numbers())
