"""Finds the config files and reads them into layers."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from rooda.base.lookup import LazyMapping
from rooda.base.paths import anchored, shown_from
from rooda.base.problems import BUILTIN, Problem, Severity, Tier
from rooda.plan import overrides
from rooda.plan.layers import Alias, Layer, Layers, Valued
from rooda.plan.settings.settings import (
    ITERATION_MODE,
    MAX_ITERATIONS,
    PRESET,
    PRESETS,
    WORKING_DIR,
)
from rooda.plan.world import World
from rooda.world.agents import registry
from rooda.world.files.plain_files import NotPlainFileError
from rooda.world.files.sight import read_named
from rooda.world.git.work_tree import folders_to_top, has_repository, is_foreign, work_tree

CONFIG_NAME = "rooda-config.yml"
LARGEST_FILE = 1024 * 1024
_PRESETS = Path(__file__).with_name("presets")


def global_folder(world: World) -> Path | None:
    """Return `$ROODA_CONFIG_HOME`, else `$XDG_CONFIG_HOME/rooda`, else `~/.config/rooda`."""
    if own := world.environ.get("ROODA_CONFIG_HOME"):
        return anchored(world.folder, own, world.home)
    xdg = world.environ.get("XDG_CONFIG_HOME")
    if xdg and Path(xdg).is_absolute():
        return Path(xdg) / "rooda"
    return world.home / ".config" / "rooda" if world.home else None


def file_above(world: World) -> Path | None:
    """Return the nearest config file above the current folder, up to the top of the work tree.

    A resumed run keeps its own work tree: the agent may have made the current folder a
    repository of its own.
    """
    return _file_above(world.folder, world.top)


def _file_above(below: Path, top: Path | None) -> Path | None:
    paths = [folder / CONFIG_NAME for folder in folders_to_top(below, top)[1:]]
    return next((one for one in paths if os.path.lexists(one) and not is_foreign(one)), None)


def read_layers(
    world: World,
    config: str | None,
    flags: Mapping[str, tuple[str, str]],
    problems: list[Problem],
    own: Layer | None = None,
) -> Layers:
    """Return every tier. `own` replaces rooda's config files, and its procedures are not rooda's.

    Variables can't change the preset and the folder of `own`, nor its iteration mode if it has one.
    """
    cli = overrides.from_flags(flags, world, problems)
    environment = overrides.from_environment(world, problems)
    presets = LazyMapping(PRESETS, read_preset)
    if own is not None:
        fixed = {PRESET.key, WORKING_DIR.key}
        if ITERATION_MODE.key in own.loop:
            fixed |= {ITERATION_MODE.key, MAX_ITERATIONS.key}
        for key in fixed:
            environment.loop.pop(key, None)
        no_procedures = replace(read_builtin(), procedures={})
        return Layers(cli, environment, own, Layer(Tier.GLOBAL), presets, no_procedures)
    return Layers(
        cli=cli,
        environment=environment,
        workspace=_workspace(world, config, problems),
        global_=read_global(world, problems),
        presets=presets,
        builtin=read_builtin(),
    )


def _workspace(world: World, config: str | None, problems: list[Problem]) -> Layer:
    if config == "":
        problems.append(Problem("must not be empty", "Name a file", field="--config"))
        return Layer(Tier.WORKSPACE)
    if config is not None:
        path = anchored(world.folder, config, world.home)
        tree = tree_around(path.parent, world.folder)
        return _read(path, config, Tier.WORKSPACE, world, problems, required=True, tree=tree)
    path = world.folder / CONFIG_NAME
    if not os.path.lexists(path):
        path = file_above(world) or path
    if not os.path.lexists(path):
        problems += _around(world)
    shown = os.path.relpath(path, world.folder)
    tree = work_tree(path.parent)
    return _read(path, shown, Tier.WORKSPACE, world, problems, required=False, tree=tree)


def tree_around(place: Path, folder: Path) -> Path | None:
    """Return the work tree of a config file in `place`; None if the work is not in that tree.

    A nested repository and the one around it belong together: an agent may have made the inner one.
    """
    tree, here = work_tree(place), work_tree(folder)
    is_around = here.is_relative_to(tree) and has_repository(tree)
    return tree if is_around or tree.is_relative_to(here) else None


def _around(world: World) -> list[Problem]:
    """Return a warning about a config file of the work tree around this one, if there is one.

    The agent may have made this folder a repository of its own.
    """
    top = folders_to_top(world.folder, world.top)[-1]
    around = top.parent
    if not has_repository(around):
        return []
    path = _file_above(top, work_tree(around))
    if path is None:
        return []
    shown = os.path.relpath(path, world.folder)
    message = (
        f"this config file is not read: {top} is a repository of its own, and has no {CONFIG_NAME}"
    )
    advice = f"Name it with --config {shown}, or run `rooda init` in {top}"
    return [Problem(message, advice, file=shown, severity=Severity.WARNING)]


def read_global(world: World, problems: list[Problem]) -> Layer:
    """Return the layer of the user's global config file."""
    folder = global_folder(world)
    if folder is None:
        return Layer(Tier.GLOBAL)
    path = folder / CONFIG_NAME
    shown = shown_from(world.folder, path, world.home)
    return _read(path, shown, Tier.GLOBAL, world, problems, required=False)


def _read(
    path: Path,
    shown: str,
    tier: Tier,
    world: World,
    problems: list[Problem],
    *,
    required: bool,
    tree: Path | None = None,
) -> Layer:
    try:
        data = read_named(path, LARGEST_FILE + 1)
    except NotPlainFileError:
        problems.append(Problem("can't be read: not a regular file", "Name a file", file=shown))
        return Layer(tier)
    except FileNotFoundError:
        if path.is_symlink():
            problems.append(Problem("is a link to nothing", "Fix or remove the link", file=shown))
        elif required:
            problems.append(Problem("the file does not exist", "Correct --config", file=shown))
        return Layer(tier)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problems.append(Problem(f"can't be read: {reason}", "Check its path and mode", file=shown))
        return Layer(tier)
    layer, found = _parse(tier, data, shown, path.parent, home=world.home, tree=tree)
    problems += found
    return layer


@cache
def read_builtin() -> Layer:
    """Return the built-in procedures, and an alias for every agent that rooda knows."""
    layer = _own("builtin.yml", Tier.BUILTIN, "")
    for name, command in registry.COMMANDS.items():
        layer.aliases[name] = Valued(Alias(command), BUILTIN, f"ai_cmd_aliases.{name}")
    return layer


@cache
def read_preset(name: str) -> Layer:
    """Return the layer of a preset."""
    return _own(f"{name}.yml", Tier.PRESET, name)


def _own(resource: str, tier: Tier, source: str) -> Layer:
    data = (_PRESETS / resource).read_bytes()
    layer, problems = _parse(tier, data, resource, Path(), source=source)
    if problems:  # the file comes with rooda: the mistake is not the user's
        raise AssertionError(f"{resource}: {problems}")
    return layer


def _parse(
    tier: Tier,
    data: bytes,
    shown: str,
    folder: Path,
    *,
    source: str = "",
    home: Path | None = None,
    tree: Path | None = None,
) -> tuple[Layer, list[Problem]]:
    from rooda.plan import file_reader  # noqa: PLC0415 - YAML is slow to load, and completion does not need it

    return file_reader.read(file_reader.ConfigFile(tier, data, shown, folder, source, home, tree))
