"""Find the config files and read them into layers."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from rooda.config.layers import Layer
from rooda.config.origin import Tier
from rooda.config.problems import Problem
from rooda.text.paths import anchored, shown_from

CONFIG_NAME = "rooda-config.yml"


@dataclass(frozen=True, slots=True)
class World:
    """What the configuration may know of the machine: passed in, so that tests bring their own."""

    folder: Path
    environ: Mapping[str, str]

    @property
    def home(self) -> Path | None:
        """The user's home folder, if there is one."""
        home = self.environ.get("HOME")
        return Path(home) if home else None


def global_folder(world: World) -> Path | None:
    """`$ROODA_CONFIG_HOME`, else `$XDG_CONFIG_HOME/rooda`, else `~/.config/rooda`."""
    if own := world.environ.get("ROODA_CONFIG_HOME"):
        return anchored(world.folder, own)
    xdg = world.environ.get("XDG_CONFIG_HOME")
    if xdg and Path(xdg).is_absolute():
        return Path(xdg) / "rooda"
    return world.home / ".config" / "rooda" if world.home else None


def read_files(world: World, config: str | None, problems: list[Problem]) -> tuple[Layer, Layer]:
    """The workspace layer and the global layer; a file that is not there is an empty layer."""
    path = anchored(world.folder, config or CONFIG_NAME)
    shown = config or CONFIG_NAME
    workspace = _read(path, shown, Tier.WORKSPACE, problems, required=config is not None)
    folder = global_folder(world)
    if folder is None:
        return workspace, Layer(Tier.GLOBAL)
    path = folder / CONFIG_NAME
    shown = shown_from(world.folder, path, world.home)
    return workspace, _read(path, shown, Tier.GLOBAL, problems, required=False)


def _read(path: Path, shown: str, tier: Tier, problems: list[Problem], *, required: bool) -> Layer:
    try:
        if path.exists() and not path.is_file():
            raise IsADirectoryError(21, "not a regular file")
        data = path.read_bytes()
    except FileNotFoundError:
        if required:
            problems.append(Problem("the file does not exist", "Correct --config", file=shown))
        return Layer(tier)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problems.append(Problem(f"can't be read: {reason}", "Check its mode", file=shown))
        return Layer(tier)
    layer, found = _parse(tier, data, shown, path.parent)
    problems += found
    return layer


def read_builtin() -> Layer:
    """The procedures and aliases that come with rooda."""
    return _own("builtin.yml", Tier.BUILTIN, "")


def read_preset(name: str) -> Layer:
    """The layer of a preset."""
    return _own(f"{name}.yml", Tier.PRESET, name)


def _own(resource: str, tier: Tier, source: str) -> Layer:
    data = (resources.files("rooda") / "presets" / resource).read_bytes()
    layer, problems = _parse(tier, data, resource, Path(), source)
    if problems:  # a mistake of ours, not of the user's
        raise AssertionError(f"{resource}: {problems}")
    return layer


def _parse(
    tier: Tier, data: bytes, shown: str, folder: Path, source: str = ""
) -> tuple[Layer, list[Problem]]:
    from rooda.config import reader  # noqa: PLC0415 - YAML is slow to load, and Tab must be quick

    return reader.read(reader.ConfigFile(tier, data, shown, folder, source))
