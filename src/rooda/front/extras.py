"""Optional packages: `pip install 'rooda[EXTRA]'` installs those of an extra."""

from importlib.util import find_spec

from rooda.base.problems import InvalidInput, Problem


def need_extra(extra: str, what: str, *modules: str) -> None:
    """Raise InvalidInput with the install command if one of the modules is not installed.

    `what` is the beginning of the message, such as `the fleet`.
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        message = f"{what} needs packages that are not installed: {', '.join(missing)}"
        advice = f"Install them: pip install 'rooda[{extra}]'"
        raise InvalidInput([Problem(message, advice, title="Not installed")])
