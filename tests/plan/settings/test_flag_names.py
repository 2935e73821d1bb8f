"""Advice for the users of a command that has not all flags of rooda."""

from rooda.plan.settings.flag_names import IN_FILES, FlagNames
from support.tables import each_row

NAMES = FlagNames(
    frozenset({"--verbose"}), {"--ai-cmd": "AGENT_CLI", "--ai-cmd-alias": "AGENT_CLI"}
)


@each_row(
    "advice,followed",
    [
        ("Choose another with --ai-cmd or --ai-cmd-alias", "Choose another with AGENT_CLI"),
        ("Choose another with --log-file", "Choose another with ROODA_LOOP_LOG_FILE"),
        ("Run again with --verbose", "Run again with --verbose"),
        ("Turn it off with --no-commit", "Turn it off with ROODA_LOOP_GIT_COMMIT=false"),
        ("Ask for it: --push", "Ask for it: ROODA_LOOP_GIT_PUSH=true"),
        ("Use --log-format json here", "Use ROODA_LOOP_LOG_FORMAT=json here"),
        ("No limit with --unlimited", "No limit with ROODA_LOOP_ITERATION_MODE=unlimited"),
        (
            "Set --iteration-timeout, --idle-timeout or --max-duration",
            "Set ROODA_LOOP_ITERATION_TIMEOUT, ROODA_LOOP_IDLE_TIMEOUT or ROODA_LOOP_MAX_DURATION",
        ),
        ("git config --global user.name ...", "git config --global user.name ..."),
        ("Correct the path", "Correct the path"),
    ],
)
def test_advice_names_no_flag_that_the_command_lacks(advice: str, followed: str) -> None:
    assert NAMES.advice(advice) == followed
    assert FlagNames().advice(advice) == advice


@each_row(
    "advice,followed",
    [
        ("Choose another with --log-file", "Choose another with loop.log_file"),
        ("with --ai-cmd or --ai-cmd-alias", "with loop.ai_cmd or loop.ai_cmd_alias"),
        ("Turn it off with --no-commit", "Turn it off with loop.git.commit: false"),
        ("Use --log-format json here", "Use loop.log_format: json here"),
        ("Correct --config", "Correct --config"),
    ],
)
def test_advice_about_config_files_names_keys(advice: str, followed: str) -> None:
    assert IN_FILES.advice(advice) == followed
