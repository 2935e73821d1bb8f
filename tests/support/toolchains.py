"""Small projects for npm, uv, cargo and go that need a package, without a network.

The package comes from a file in the work tree. Each project is built twice: the first build puts
the package into the cache of the tool and deletes the file, the second build needs the cache.
"""

import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.recorded import git, within
from support.workspace import Workspace

ANSWER = "the package says 42"


@dataclass(frozen=True)
class Toolchain:
    """A tool: how it builds, where its cache is below HOME, and files of the user that are secret.

    `find` puts the tool into the home folder of a test, if it belongs there, and returns its path.
    `prepare` writes the project.
    """

    name: str
    first: str
    again: str
    cache: str
    secrets: tuple[str, ...]
    prepare: Callable[[Workspace], None]
    find: Callable[[Path], str | None]


def _on_path(name: str) -> Callable[[Path], str | None]:
    return lambda _: shutil.which(name)


def _npm(tree: Workspace) -> None:
    tree.write("dep/package.json", json.dumps({"name": "dep", "version": "1.0.0"}))
    tree.write("dep/index.js", f"console.log({ANSWER!r})")
    needs = {"dependencies": {"dep": "file:dep-1.0.0.tgz"}}
    tree.write("package.json", json.dumps({"name": "app", "version": "1.0.0", **needs}))


_NPM = "npm --offline --no-audit --no-fund --silent"
NPM = Toolchain(
    "npm",
    first=f"{_NPM} pack ./dep; {_NPM} install; node -e 'require(\"dep\")'; rm -r dep dep-1.0.0.tgz",
    again=f"rm -r node_modules; {_NPM} ci; node -e 'require(\"dep\")'",
    cache=".npm/_cacache",
    secrets=(".npmrc", ".npm/_cacache/of-the-user"),
    prepare=_npm,
    find=_on_path("npm"),
)


def _uv(tree: Workspace) -> None:
    info = "dep-1.0.0.dist-info"
    with zipfile.ZipFile(tree.path / "dep-1.0.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("dep.py", f"print({ANSWER!r})\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: dep\nVersion: 1.0.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(
            f"{info}/RECORD", f"dep.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )


def _find_uv(home: Path) -> str | None:
    """Put uv where its installer puts it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    found = shutil.which("uv", path=path)
    if found is None or not Path(found).read_bytes().startswith(b"\x7fELF"):
        return None
    (home / ".local/bin").mkdir(parents=True)
    return str(shutil.copy(found, home / ".local/bin/uv"))


_VENV = "uv venv -q --offline --no-python-downloads --clear"
_INSTALL = "uv pip install -v --offline --no-index --find-links . dep"
UV = Toolchain(
    "uv",
    first=f"{_VENV}; {_INSTALL}; .venv/bin/python -c 'import dep'",
    again=f"{_VENV}; {_INSTALL} 2>&1 | grep 'already cached'; .venv/bin/python -c 'import dep'",
    cache=".cache/uv",
    secrets=(".local/share/uv/credentials/credentials.toml", ".cache/uv/of-the-user", ".netrc"),
    prepare=_uv,
    find=_find_uv,
)


def _cargo(tree: Workspace) -> None:
    package = '[package]\nname = "{}"\nversion = "1.0.0"\nedition = "2021"\n'
    dep = within(tree, "dep")
    dep.write("Cargo.toml", package.format("dep"))
    dep.write("src/lib.rs", f'pub const ANSWER: &str = "{ANSWER}";')
    git(dep, "init", "-q")
    git(dep, "add", "-A")
    git(dep, "commit", "-qm", "the package")
    needs = f'[dependencies]\ndep = {{ git = "{dep.path.as_uri()}" }}\n'
    tree.write("Cargo.toml", package.format("app") + needs)
    tree.write("src/main.rs", 'fn main() { println!("{}", dep::ANSWER); }')


def _find_cargo(home: Path) -> str | None:
    """Link a toolchain of rustup into the home folder."""
    found = shutil.which("cargo")
    rustup = Path(os.environ.get("RUSTUP_HOME") or Path.home() / ".rustup")
    if found is None or not rustup.is_dir():
        return found
    (home / ".cargo").mkdir()
    (home / ".cargo/bin").symlink_to(Path(found).parent)
    (home / ".rustup").symlink_to(rustup)
    return str(home / ".cargo/bin/cargo")


CARGO = Toolchain(
    "cargo",
    first="cargo run -q; rm -rf dep target",
    again="cargo run -q --offline",
    cache=".cargo/git/db",
    secrets=(".cargo/credentials.toml", ".cargo/git/of-the-user"),
    prepare=_cargo,
    find=_find_cargo,
)


def _go(tree: Workspace) -> None:
    module, versions = "module example.org/dep\n", "proxy/example.org/dep/@v"
    tree.write(f"{versions}/v1.0.0.mod", module)
    tree.write(f"{versions}/v1.0.0.info", json.dumps({"Version": "v1.0.0"}))
    with zipfile.ZipFile(tree.path / versions / "v1.0.0.zip", "w") as source:
        source.writestr("example.org/dep@v1.0.0/go.mod", module)
        source.writestr(
            "example.org/dep@v1.0.0/dep.go", f'package dep\n\nconst Answer = "{ANSWER}"\n'
        )
    tree.write("go.mod", "module app\n\ngo 1.19\n\nrequire example.org/dep v1.0.0\n")
    main = 'import ("example.org/dep"; "fmt")\n\nfunc main() { fmt.Println(dep.Answer) }'
    tree.write("main.go", f"package main\n\n{main}")


_GO = "export GOFLAGS=-mod=mod GONOSUMDB='*' GOTOOLCHAIN=local"
GO = Toolchain(
    "go",
    first=f'{_GO} GOPROXY="file://$PWD/proxy"; go run .; rm -r proxy',
    again=f"{_GO} GOPROXY=off; go run .",
    cache="go/pkg/mod/cache",
    secrets=("go/pkg/mod/cache/of-the-user", ".config/go/env", ".netrc"),
    prepare=_go,
    find=_on_path("go"),
)

TOOLCHAINS = {one.name: one for one in (NPM, UV, CARGO, GO)}
