"""The account of each agent."""

from rooda.base.problems import BUILTIN
from rooda.plan.command import Agent, AgentCommand
from rooda.run.request import ForPrograms


def agent(*words: str, alias: str | None = None) -> Agent:
    return Agent.of(AgentCommand(" ".join(words), "", BUILTIN, "", alias=alias), words)


def test_each_agent_has_its_own_account_and_the_given_name_is_for_the_first_kind() -> None:
    agents = [agent("claude", "-p"), agent("claude", "--model", "x"), agent("codex"), agent("./my")]
    own = {
        "claude -p": "claude",
        "claude --model x": "claude",
        "codex": "codex",
        "./my": "my",
    }
    assert ForPrograms().accounts(agents) == own
    named = own | {"claude -p": "team", "claude --model x": "team"}
    assert ForPrograms(account="team").accounts(agents) == named
