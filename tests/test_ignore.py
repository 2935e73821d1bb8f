"""What ignore files hide: the same files as for git, and at no price that an agent could set."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooda.workspace.ignore import MOST_BYTES, MOST_LEVELS, MOST_LINES, Ignore, rules_of
from rooda.workspace.scan import Scan, changes, scan

Tree = Mapping[str, bytes]

# -- what git would add, and what we see ---------------------------------------------------


def git(top: Path, *arguments: str, given: bytes = b"") -> bytes:
    """Run git as it is on a new machine: no rules but those in the tree."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(top / ".git"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(top.parent),
    }
    command = ["git", "-C", str(top), *arguments]
    return subprocess.run(command, env=environ, input=given, capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository for one tree after the other; nothing is ever added to it."""
    top = tmp_path_factory.mktemp("repository")
    git(top, "init", "--quiet", "--template=")
    return top


def fill(top: Path, tree: Tree) -> None:
    """Put these files there, and nothing else."""
    for path in top.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, content in tree.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def as_git_sees_it(top: Path) -> list[str]:
    listed = git(top, "ls-files", "--others", "--exclude-standard", "-z")
    return sorted(os.fsdecode(name) for name in listed.split(b"\0")[:-1])


def as_we_see_it(top: Path) -> list[str]:
    return list(changes(Scan(), scan(top)).created)


# -- the rules, one by one -----------------------------------------------------------------

# Why, the rules, what they hide and what they don't; a `_` in a name stands for a space.
RULES = [
    ("a name, anywhere", "a", "a b/a c/a/d", "b/c aa"),
    ("a star", "*.o", "x.o .o b/x.o", "x.c o x.oo"),
    ("a question mark", "?", "a b/c", "ab"),
    ("a question mark is one byte", "?", "a", "é"),
    ("a bracket", "[ab-d]", "a b c d", "e -"),
    ("not in a bracket", "[!a]\n[^b]z", "b az", "a bz"),
    ("a closing bracket as a member", "[]-a]x", "]x ^x ax", "bx [x"),
    ("a minus as a member", "[a-]\n[-b]x", "a - bx -x", "b cx"),
    ("a range the wrong way round", "[z-a]", "z", "a m"),
    ("an escape in a bracket", "[\\]\\-x]", "] - x", "\\ a"),
    ("a range with escapes", "[\\a-\\c]", "a b c", "\\ d"),
    ("a kind of characters", "[[:digit:]x]y", "1y xy", "ay :y"),
    ("what only looks like a kind", "[[:x]", "[ : x", "a"),
    ("a kind that there isn't", "[[:nonsense:]x]\nb", "b", "x n"),
    ("a bracket that doesn't end", "[ab\nb", "b", "a [ab"),
    ("a slash within a bracket", "a[/]b\n/a[!x]c", "abc", "a/b a/c"),
    ("an escape", "\\*\n\\a\\!", "* a!", "b \\a"),
    ("a backslash at the end", "a\\\nb", "b", "a a\\"),
    ("a comment", "#a\n\\#b", "#b", "#a a"),
    ("lines that say nothing", "\n\n/\n!\n//\na", "a", "b"),
    ("a folder", "a/", "a/b c/a/d", "d/a"),
    ("a slash in front", "/a", "a", "b/a"),
    ("a slash in the middle", "a/b\na/c", "a/b a/c/d", "c/a/b b"),
    ("two slashes", "a//b\n//c\nd//", "", "a/b c d/e"),
    ("a star stays in its segment", "a/*/c", "a/b/c", "a/c a/b/b/c"),
    ("a star at the end", "a/*", "a/b a/c/d", "b/a/b"),
    ("any folders in front", "**/a/b", "a/b x/a/b x/y/a/b", "a/x/b b"),
    ("any folders in the middle", "a/**/b", "a/b a/x/b a/x/y/b", "b x/a/b"),
    ("any folders twice", "a/**/b/**/c", "a/b/c a/b/x/c a/b/b/c", "a/c a/x/c"),
    ("any folders and a pair", "**/a/b/**/c", "a/b/c a/a/b/c", "a/c a/x/b/c/c/d"),
    ("all inside", "a/**", "a/b a/c/d", "b x/a/b"),
    ("all folders inside", "a/**/", "a/c/d", "a/b"),
    ("two stars as a part of a name", "x/a*b**c", "x/abc x/aabbcc", "x/ab/c"),
    ("at least one folder", "**\\/b", "a/b a/c/b", "b c"),
    ("an exception", "*.o\n!x.o", "y.o", "x.o a/x.o"),
    ("the last rule counts", "!x\nx", "x a/x", "y"),
    ("an exception by path", "*.o\n!/a/x.o", "x.o b/a/x.o", "a/x.o"),
    ("no way back into a folder", "a\n!a/b", "a/b", "b"),
    ("a way back among all inside", "a/**\n!a/b", "a/c", "a/b"),
    ("a way back around the folder", "a/*\n!a/b", "a/c", "a/b"),
    ("spaces at the end", "a  \nb\\ \nc\\  ", "a b_ c_", "a_ b c"),
    ("lines from another system", "a\r\nb \r\n\r\nc\r", "a b c", "a\r d"),
    ("a mark in front", "\N{BYTE ORDER MARK}a", "a", "b"),
    ("a zero byte", "a\0b\n\0c", "a", "ab c"),
    ("letters are not folded", "A", "A", "a"),
    ("a line break in a name", "a?b*\nc/**", "a\nbc c/d\ne", "ab"),
]


def named(text: str) -> list[str]:
    return [name.replace("_", " ") for name in text.split(" ") if name]


@pytest.mark.parametrize("why, rules, hidden, seen", RULES, ids=[row[0] for row in RULES])
def test_a_rule_hides_what_it_hides_for_git(
    repository: Path, why: str, rules: str, hidden: str, seen: str
) -> None:
    assert why
    tree = dict.fromkeys(named(hidden) + named(seen), b"")
    fill(repository, {**tree, ".gitignore": rules.encode()})
    visible = sorted([*named(seen), ".gitignore"])
    assert as_we_see_it(repository) == visible
    assert as_git_sees_it(repository) == visible


KINDS = "alnum alpha blank cntrl digit graph lower print punct space upper xdigit"


def test_every_kind_of_characters_is_the_same_as_for_git(repository: Path) -> None:
    kinds = KINDS.split()
    fill(repository, {f"{kind}/.gitignore": f"[[:{kind}:]]".encode() for kind in kinds})
    letters = [bytes([code]) for code in range(1, 256) if bytes([code]) not in b"./"]
    paths = [b"%b/%b" % (kind.encode(), letter) for kind in kinds for letter in letters]
    ignored = git(repository, "check-ignore", "--stdin", "-z", given=b"\0".join(paths))
    hidden = [
        path
        for path in paths
        if rules_of(b"[[:%b:]]" % path[:-2]).verdict(path[-1:], is_folder=False)
    ]
    assert hidden == ignored.split(b"\0")[:-1]
    assert len({path.partition(b"/")[0] for path in hidden}) == len(kinds)


def test_the_rules_of_a_folder_come_before_those_above_it(repository: Path) -> None:
    tree = {
        ".gitignore": b"*.log\n/a/top\n!c.txt",
        "a/.gitignore": b"!keep.log\n/b\nc.txt",
        "a/b/x": b"",
        "a/c/b/x": b"",
        "a/c/keep.log": b"",
        "a/c/other.log": b"",
        "a/c/c.txt": b"",
        "a/top": b"",
        "a/a/top": b"",
        "keep.log": b"",
        "c.txt": b"",
    }
    fill(repository, tree)
    visible = [".gitignore", "a/.gitignore", "a/a/top", "a/c/b/x", "a/c/keep.log", "c.txt"]
    assert as_we_see_it(repository) == visible
    assert as_git_sees_it(repository) == visible


def test_an_ignore_file_that_is_a_link_or_a_folder_says_nothing(repository: Path) -> None:
    fill(repository, {"rules": b"x", "x": b"", "a/.gitignore/b": b"", "a/x": b""})
    (repository / ".gitignore").symlink_to("rules")
    visible = [".gitignore", "a/.gitignore/b", "a/x", "rules", "x"]
    assert as_we_see_it(repository) == visible
    assert as_git_sees_it(repository) == visible


# -- any rules, any tree -------------------------------------------------------------------

PLAIN = "a b ab c * * ** *** ? / / ! # - [ ] \\ : ^"
COMPOSED = r"**/ /** /**/ [ab] [!a] [^b] [a-c] [b-a] []a] [a- [/b] \* \/ [: :] [[:alpha:]]"
PIECES = [*PLAIN.split(), *COMPOSED.split(), " ", "\t", "\r", "é"]
PATTERN = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)
NAMES = r"a b c ab ba abc aab !a # - * ] [ \ é"
NAME = st.sampled_from([*NAMES.split(), " ", "a "])
# Older versions of git take the stars in `/a**/b` for any folders, as if a slash were before them.
TAKEN_FOR_FOLDERS = re.compile(r"!?/?[^*?\[\\]*[^*?\[\\/]\*\*+(\\?/|\r|$)", re.DOTALL)
IGNORE_FILE = st.lists(
    st.builds(str.__add__, st.sampled_from(["", "", "", "!"]), PATTERN).filter(
        lambda pattern: not TAKEN_FOR_FOLDERS.match(pattern)
    ),
    min_size=1,
    max_size=5,
).map("\n".join)
FOLDER = st.lists(NAME, max_size=3)


def grown(paths: Iterable[list[str]], rules: Mapping[tuple[str, ...], str]) -> Tree:
    """A tree of these paths; one that is in the way of another is left out."""
    tree: dict[str, bytes] = {}
    files: set[tuple[str, ...]] = set()
    folders: set[tuple[str, ...]] = set()
    places = [*((*folder, ".gitignore") for folder in rules), *(tuple(path) for path in paths)]
    for path in places:
        above = {path[:depth] for depth in range(len(path))}
        if path not in folders and not above & files:
            folders |= above
            files.add(path)
            tree["/".join(path)] = rules[path[:-1]].encode() if path[-1] == ".gitignore" else b""
    return tree


TREE = st.builds(
    grown,
    st.lists(st.lists(NAME, min_size=1, max_size=4), min_size=5, max_size=25),
    st.dictionaries(st.just(()) | FOLDER.map(tuple), IGNORE_FILE, min_size=1, max_size=3),
)


def is_the_same_for_git(repository: Path, tree: Tree) -> None:
    fill(repository, tree)
    assert as_we_see_it(repository) == as_git_sees_it(repository)


@settings(deadline=None, max_examples=50)
@given(tree=TREE)
def test_any_rules_hide_what_they_hide_for_git(repository: Path, tree: Tree) -> None:
    is_the_same_for_git(repository, tree)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(tree=TREE)
def test_many_rules_hide_what_they_hide_for_git(repository: Path, tree: Tree) -> None:
    is_the_same_for_git(repository, tree)


# -- hostile rules -------------------------------------------------------------------------

LONGEST_NAME = b"a" * 255
LONGEST_PATH = b"/".join([LONGEST_NAME] * 15)
DEEPEST_PATH = b"/".join([b"a"] * 2_000)
HOSTILE = [
    b"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
    b"*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab*",
    b"*[!b]*[!b]*[!b]*[!b]*[!b]*[!b]*[!b]b",
    b"**/*a*a*a*a*a*a*b/**/c",
    b"**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/b",
    b"**/" + b"a/" * 500 + b"b/**/c",
    b"*/" * 1_000 + b"b",
    b"**/" * 1_000 + b"b",
    b"*" * 4_000 + b"b",
    b"[" * 4_000,
    b"[[:" * 1_300 + b":]",
]


def is_matched_in_time(content: bytes) -> None:
    began = time.process_time()
    for path in (LONGEST_NAME, LONGEST_PATH, DEEPEST_PATH):
        assert rules_of(content).verdict(path, is_folder=False) is None
    assert time.process_time() - began < 20, "with a wrong turn it would be hours"


@pytest.mark.parametrize("pattern", HOSTILE, ids=lambda pattern: pattern[:20].decode())
def test_no_rule_takes_long(pattern: bytes) -> None:
    is_matched_in_time(pattern)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", HOSTILE, ids=lambda pattern: pattern[:20].decode())
def test_no_rule_takes_long_however_often_it_is_there(pattern: bytes) -> None:
    is_matched_in_time((pattern + b"\n") * (MOST_BYTES // len(pattern)))


@pytest.mark.parametrize("pattern, path", [(b"*a" * 30, b"a" * 30), (b"**/a/" * 30 + b"b", b"b")])
def test_a_rule_with_many_stars_still_matches(pattern: bytes, path: bytes) -> None:
    path = b"a/" * 40 + path
    assert rules_of(pattern).verdict(path, is_folder=False)


def test_what_is_behind_the_bound_of_a_file_does_not_count() -> None:
    rest = b"#" * (MOST_BYTES - len(b"a\n\nbc"))
    rules = rules_of(b"a\n" + rest + b"\nbc" + b"d\ne")
    found = {name: rules.verdict(name, is_folder=False) for name in (b"a", b"bc", b"bcd", b"e")}
    assert found == {b"a": True, b"bc": None, b"bcd": None, b"e": None}


def test_a_file_that_is_just_within_the_bound_counts() -> None:
    content = b"a\n" + b"#" * (MOST_BYTES - len(b"a\n\nb")) + b"\nb"
    assert len(content) == MOST_BYTES
    assert rules_of(content).verdict(b"b", is_folder=False)


def test_only_so_many_lines_count() -> None:
    rules = rules_of(b"\n" * (MOST_LINES - 1) + b"a\nb")
    assert rules.verdict(b"a", is_folder=False)
    assert rules.verdict(b"b", is_folder=False) is None


def test_a_rule_that_is_longer_than_any_path_does_not_count() -> None:
    assert rules_of(b"*" * 4_096).verdict(b"a", is_folder=False)
    assert rules_of(b"*" * 4_097).verdict(b"a", is_folder=False) is None


def test_only_so_many_ignore_files_count_one_in_another() -> None:
    ignore, folder = Ignore(), b""
    for level in range(MOST_LEVELS + 1):
        ignore = ignore.within(folder, b"x%d" % level)
        folder += b"a/"
    assert ignore.hides(folder + b"x0", is_folder=False)
    assert ignore.hides(folder + b"x%d" % (MOST_LEVELS - 1), is_folder=False)
    assert not ignore.hides(folder + b"x%d" % MOST_LEVELS, is_folder=False)
