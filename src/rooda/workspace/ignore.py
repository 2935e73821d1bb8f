"""What `.gitignore` files leave out, by git's rules but without git.

Agents write these files, so nothing in them may hold up a run: a pattern becomes an expression
that never takes back what a star has matched, and there is a bound on what is read. Bytes all the
way, as in git: `?` is one byte. Upper and lower case differ, whatever the file system makes of it.
"""

import re
from functools import lru_cache

from msgspec import Struct

IGNORE_FILE = ".gitignore"
MOST_BYTES = 64 * 1024  # of one file; whatever comes after that doesn't count
MOST_LINES = 2_000
MOST_LEVELS = 32  # of folders with such a file, one in another
_LONGEST = 4_096  # no path is longer

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# A segment of a pattern is a list of atoms: expressions for one byte each, or one of these.
_STAR = b"*"
_DEEP = b"**"  # a whole segment: any number of folders
_SOME_FOLDERS = rb"(?:[^/]*/)*"

_TOKEN = re.compile(
    rb"(?P<slash>\\?/)"
    rb"|(?P<deep>\*\*+(?=/|\Z))|(?P<deeper>\*\*+(?=\\/))|(?P<star>\*+)"
    rb"|(?P<any>\?)|(?P<bracket>\[)|(?P<literal>\\.|[^\\])",
    re.DOTALL,
)
_MEMBER = re.compile(
    rb"\[:(?P<kind>[^\]]*):\]|(?P<low>\\.|[^\\])(?:-(?P<high>\\.|[^\]\\]))?", re.DOTALL
)
_KINDS = {
    b"alnum": (b"09", b"AZ", b"az"),
    b"alpha": (b"AZ", b"az"),
    b"blank": (b"  ", b"\t\t"),
    b"cntrl": (b"\x00\x1f", b"\x7f\x7f"),
    b"digit": (b"09",),
    b"graph": (b"!~",),
    b"lower": (b"az",),
    b"print": (b" ~",),
    b"punct": (b"!/", b":@", b"[`", b"{~"),
    b"space": (b"  ", b"\t\n", b"\r\r"),
    b"upper": (b"AZ",),
    b"xdigit": (b"09", b"AF", b"af"),
}


class _Joined(Struct, frozen=True):
    """Rules as one expression, the last one first: the first to match is the one that counts."""

    expression: re.Pattern[bytes]
    verdicts: tuple[tuple[int, bool | None], ...]  # with the lines they are from

    def verdict(self, text: bytes) -> tuple[int, bool | None]:
        found = self.expression.match(text)
        return self.verdicts[found.lastindex or 0] if found else self.verdicts[0]


class Rules(Struct, frozen=True):
    """One ignore file: the rules about names, and those about paths from its folder on."""

    names: _Joined
    paths: _Joined

    def verdict(self, path: bytes, *, is_folder: bool) -> bool | None:
        """Whether the last rule about a path hides it; None if there is no such rule."""
        text = path + b"/" if is_folder else path
        name = text[path.rfind(b"/") + 1 :]
        return max(self.names.verdict(name), self.paths.verdict(text))[1]


class Ignore(Struct, frozen=True):
    """The rules that hold in one folder: its own before those of the folders above it."""

    levels: tuple[tuple[int, Rules], ...] = ()

    def within(self, folder: bytes, content: bytes) -> "Ignore":
        """The rules within a folder (`src/`, the top being empty) with this ignore file in it."""
        if len(self.levels) == MOST_LEVELS:
            return self
        return Ignore(((len(folder), rules_of(content)), *self.levels))

    def hides(self, path: bytes, *, is_folder: bool) -> bool:
        """Whether a path is left out, given that none of the folders above it is.

        Whoever asks must not go into a hidden folder: no rule brings back anything inside of it.
        """
        for start, rules in self.levels:
            verdict = rules.verdict(path[start:], is_folder=is_folder)
            if verdict is not None:
                return verdict
        return False


class _Rule(Struct, frozen=True):
    line: int
    expression: bytes
    hides: bool
    is_about_names: bool


@lru_cache(maxsize=128)
def rules_of(content: bytes) -> Rules:
    """The rules in an ignore file; they are kept, as the next look will find the same file."""
    if len(content) > MOST_BYTES:
        content = content[:MOST_BYTES].rpartition(b"\n")[0]
    lines = content.removeprefix(_BYTE_ORDER_MARK).split(b"\n")[:MOST_LINES]
    rules = [rule for rule in map(_rule, range(len(lines)), lines) if rule]
    return Rules(
        _joined([rule for rule in rules if rule.is_about_names]),
        _joined([rule for rule in rules if not rule.is_about_names]),
    )


def _joined(rules: list[_Rule]) -> _Joined:
    # An empty group tells which one it was. It is at the end, as a beginning is quick to rule out.
    expressions = [rule.expression + b"()" for rule in reversed(rules)]
    verdicts = [(rule.line, rule.hides) for rule in reversed(rules)]
    return _Joined(
        re.compile(b"|".join(expressions) or rb"(?!)", re.DOTALL), ((-1, None), *verdicts)
    )


def _rule(line: int, text: bytes) -> _Rule | None:
    """What a line says, if there is anything that it could match."""
    pattern = _without_spaces(text.removesuffix(b"\r").partition(b"\0")[0])
    if pattern.startswith(b"#") or len(pattern) > _LONGEST:
        return None
    hides = not pattern.startswith(b"!")
    pattern = pattern.removeprefix(b"!")
    end = rb"/\Z" if pattern.endswith(b"/") else rb"/?\Z"
    pattern = pattern.removesuffix(b"/")
    if not pattern:
        return None
    try:
        expression = _path(_segments(pattern.removeprefix(b"/")))
    except ValueError:
        return None
    return _Rule(line, expression + end, hides, is_about_names=b"/" not in pattern)


def _without_spaces(text: bytes) -> bytes:
    """Without the spaces at the end, unless a backslash keeps one."""
    bare = text.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return text[: len(bare) + backslashes % 2]


def _path(segments: list[list[bytes]]) -> bytes:
    """The expression for a path.

    What is between two `**` has a fixed number of segments. So the first place where it fits is
    as good as any, and nothing has to be tried again.
    """
    blocks: list[list[bytes]] = [[]]
    for segment in segments:
        if segment == [_DEEP]:
            blocks.append([])
        else:
            blocks[-1].append(_name(segment))
    first, *rest = blocks
    if not rest:
        return b"/".join(first)
    *middle, last = rest
    return b"".join(
        (
            *(name + b"/" for name in first),
            *(rb"(?>%b?%b/)" % (_SOME_FOLDERS, b"/".join(block)) for block in middle if block),
            _SOME_FOLDERS + b"/".join(last) if last else rb"[^/].*",
        )
    )


def _name(segment: list[bytes]) -> bytes:
    """The expression for one name. Between two stars, too, the first place is as good as any."""
    pieces = [b""]
    for atom in segment:
        if atom == _STAR:
            pieces.append(b"")
        else:
            pieces[-1] += atom
    first, *rest = pieces
    if not rest:
        return first
    if not any(pieces):
        return rb"[^/]+"
    *middle, last = rest
    return first + b"".join(rb"(?>[^/]*?%b)" % piece for piece in middle) + rb"[^/]*" + last


def _segments(pattern: bytes) -> list[list[bytes]]:
    """A pattern taken apart, at its slashes and then into atoms. ValueError if it is broken."""
    segments: list[list[bytes]] = [[]]
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            raise ValueError("a backslash at the end")
        at = token.end()
        match token.lastgroup:
            case "slash":
                segments.append([])
            case "deep" if not segments[-1]:
                segments[-1].append(_DEEP)
            case "deeper" if not segments[-1]:  # git takes `**\/` for at least one folder
                segments[-1:] = [[_STAR], [_DEEP]]
            case "deep" | "deeper" | "star":
                segments[-1].append(_STAR)
            case "any":
                segments[-1].append(rb"[^/]")
            case "bracket":
                atom, at = _bracket(pattern, at)
                segments[-1].append(atom)
            case _:
                segments[-1].append(re.escape(token[0][-1:]))
    return segments


def _bracket(pattern: bytes, at: int) -> tuple[bytes, int]:
    """The expression for what comes after a `[`, and where that ends."""
    is_negated = pattern.startswith((b"!", b"^"), at)
    first = at = at + is_negated
    ranges: list[bytes] = []
    while at == first or not pattern.startswith(b"]", at):  # as the first member it is itself
        member = _MEMBER.match(pattern, at)
        if member is None:
            raise ValueError("a bracket that doesn't end")
        at = member.end()
        ranges += _ranges(member)
    inside = b"".join(rb"\x%02x-\x%02x" % (low, high) for low, high in ranges)
    return rb"[^/%b]" % inside if is_negated else rb"(?!/)[%b]" % inside, at + 1


def _ranges(member: re.Match[bytes]) -> tuple[bytes, ...]:
    """The ranges that a member of a bracket stands for, each as its two ends."""
    kind, low, high = member.group("kind", "low", "high")
    if kind is None:  # `[z-a]` is a z: the first end is always in
        return (low[-1:] + max(low[-1:], (high or low)[-1:]),)
    if kind not in _KINDS:
        raise ValueError("no kind of characters")
    return _KINDS[kind]
