"""`rooda completion` and `rooda version`."""

import click
from click.shell_completion import get_completion_class

from rooda import __version__


@click.command("completion")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    bash: eval "$(rooda completion bash)" in ~/.bashrc; zsh likewise in ~/.zshrc;
    fish: rooda completion fish > ~/.config/fish/completions/rooda.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    root = ctx.find_root().command
    click.echo(found(root, {}, "rooda", "_ROODA_COMPLETE").source())


@click.command("version")
def version() -> None:
    """Show the version."""
    click.echo(f"rooda {__version__}")
