"""The command group of `rooda`. Each command is a row of the table, loaded when it is needed."""

import importlib
from typing import Any

import click
from click.shell_completion import CompletionItem

from rooda import __version__
from rooda.front.command_table import COMMANDS, HELP_FLAGS

EXAMPLES = """\
  rooda demo                              see a run, with no agent and no key
  rooda init                              find agents and tests, write rooda-config.yml
  rooda doctor                            which agents are there, and what is wrong
  rooda list                              which procedures there are
  rooda build -a claude                   run a procedure
  rooda loop PROMPT.md -a claude          run a prompt of your own, again and again
  rooda build -n 20 -v -c TASK.md         more iterations, output shown, context added
  rooda build --dry-run                   check everything, start nothing
  rooda show                              what the last run did, what is proven, what is next
  rooda report                            the same as one page for your browser
  rooda history                           what ran here, and how it ended
  rooda why                               which rule ended the last run
  rooda resume                            continue an interrupted run, with its flags
  rooda restore 3                         bring back the files as iteration 3 left them
"""

_FIRST_STEPS = """\
  rooda demo                           see a run, with no agent and no key
  rooda init                           find agents and tests, write rooda-config.yml
  rooda doctor                         check which agents are installed
  rooda list                           list the procedures
  rooda build -a claude                run a procedure
  rooda loop PROMPT.md -a claude       run a prompt of your own, again and again"""


class Rooda(click.Group):
    """Loads commands when they are needed; any other word is a procedure for `run`."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return every command, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; its module is imported now."""
        if cmd_name not in COMMANDS:
            return None
        row = COMMANDS[cmd_name]
        loaded = importlib.import_module(f"rooda.front.cli.commands.{row.module}")
        command: click.Command = getattr(loaded, row.attribute)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accept a run's flags before the procedure, and `help` as people type it."""
        if args and args[0] == "help":
            args = [*args[1:2], "--help"]
        elif args and args[0].startswith("-") and args[0] not in ("-h", "--help", "--version"):
            args = _with_command_first(args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Read `rooda NAME` as `rooda run NAME`, unless NAME is a command.

        Help and errors then say `rooda NAME`, as the user typed it.
        """
        if args[0] not in COMMANDS:
            return args[0], self.get_command(ctx, "run"), args
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, and examples."""
        for section in dict.fromkeys(row.section for row in COMMANDS.values()):
            rows = [(name, row.help) for name, row in COMMANDS.items() if row.section == section]
            with formatter.section(section):
                formatter.write_dl(rows)
        with formatter.section("Examples"):
            formatter.write(EXAMPLES)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and procedures that begin with what was typed."""
        from rooda.front.completion import procedure_names

        commands = [CompletionItem(name, help=row.help) for name, row in COMMANDS.items()]
        others = [name for name in procedure_names() if name not in COMMANDS]
        found = [*commands, *(CompletionItem(name) for name in others)]
        if incomplete.startswith("-"):
            found = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in found if item.value.startswith(incomplete)]


def _with_command_first(args: list[str]) -> list[str]:
    """Return a run's flags after its command: `-n 5 build` becomes `run -n 5 build`."""
    from rooda.front.flags import run_options
    from rooda.front.options import names_taking_value, word_pairs
    from rooda.plan.layers import FILE_RUN

    pairs, rest = word_pairs(args, names_taking_value(run_options()))
    first = next((place for place, (word, _) in enumerate(pairs) if not word.startswith("-")), None)
    if first is None or pairs[first][0] != FILE_RUN:
        return ["run", *args]
    others = [word for pair in (*pairs[:first], *pairs[first + 1 :]) for word in pair]
    return [FILE_RUN, *(word for word in others if word is not None), *rest]


def _print_version(ctx: click.Context, _: click.Parameter, value: Any) -> None:
    if value:
        click.echo(f"rooda {__version__}")
        ctx.exit()


@click.group(
    cls=Rooda,
    invoke_without_command=True,
    context_settings=HELP_FLAGS,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
@click.pass_context
def app(ctx: click.Context) -> None:
    """Drive an AI coding agent through iterations, each a fresh process with a fresh context.

    `rooda PROCEDURE [flags]` runs a procedure until the agent says that the work is done or a
    limit is reached; `rooda PROCEDURE --help` shows its flags. `rooda loop FILE` does the same with
    a prompt file of yours. Exit codes: 0 success, 1 aborted
    or wrong input, 2 maximum of iterations reached, 130 interrupted, 3 an error of rooda's own.
    """
    if ctx.invoked_subcommand is None:
        # Exit 0 means that the work is done, and here no work was named.
        raise click.UsageError(f"name a procedure or a command\n{_FIRST_STEPS}", ctx)
