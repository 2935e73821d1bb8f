"""What a report shows of an iteration besides the summary: words, diff, output. Within limits."""

from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec import Struct

from rooda.base.secrets.masking import MASK_NOTHING, Masker
from rooda.views.model.summary import IterationSummary, RunSummary
from rooda.views.report.untrusted import plain_text
from rooda.views.wording.words import AgentWords, words_of
from rooda.world.git.snapshots.patches import Patch, patches
from rooda.world.git.snapshots.store import Store
from rooda.world.git.snapshots.takeover import store_to_read
from rooda.world.state.record_place import RecordPlace
from rooda.world.tools import Tools

_ALL = 3_000_000  # bytes of details in a page
_MOST, _LEAST = 40_000, 1_500  # bytes of one iteration
_MOST_CHANGED = 5_000  # lines of a difference that is copied
_STEPS = 6


class IterationDetails(Struct, frozen=True):
    """The details of one iteration; `diff` has a class name and a text for each line."""

    words: AgentWords = AgentWords()
    output: str = ""
    diff: tuple[tuple[str, str], ...] = ()
    diff_is_cut: bool = False


class DetailReader:
    """Reads details, and keeps them: a run that is at work makes its page again and again."""

    def __init__(
        self,
        place: RecordPlace,
        tools: Tools | None = None,
        masker: Masker = MASK_NOTHING,
        most: int = _MOST,
    ) -> None:
        """`most` are the bytes of one iteration."""
        self._place = place
        self._most = most
        self._masker = masker
        self._tools = tools or Tools(folders=[place.tree])
        self._words: dict[tuple[int, int], AgentWords] = {}
        self._patches: dict[tuple[str, str], Patch] = {}

    def read(
        self, run: RunSummary, wanted: Iterable[IterationSummary]
    ) -> dict[int, IterationDetails]:
        """Return the details of these iterations."""
        wanted = list(wanted)
        budget = max(_LEAST, min(self._most, _ALL // max(1, len(wanted))))
        diffs = self._diffs(wanted, budget // 100)
        return {one.number: self._details(run, one, diffs, budget) for one in wanted}

    def _details(
        self,
        run: RunSummary,
        one: IterationSummary,
        diffs: Mapping[int, Patch],
        budget: int,
    ) -> IterationDetails:
        words = self._words_of(run, one, budget)
        is_failed = one.verify is not None and bool(one.verify.error)
        most = budget // 4 if is_failed else min(self._most // 50, budget // 8)
        output = _end(one.verify.output if one.verify else "", most)
        patch = diffs.get(one.number)
        lines, is_cut = _fitting(patch, budget // 2, self._masker) if patch else ((), False)
        return IterationDetails(words, output, lines, is_cut)

    def _words_of(self, run: RunSummary, one: IterationSummary, budget: int) -> AgentWords:
        key = (one.number, one.attempt)
        found = self._words.get(key)
        if found is None:
            longest = min(4000, budget // 4)
            limits = {"longest": longest, "steps": _STEPS}
            found = words_of(self._place, run.run, one, **limits, masker=self._masker)
            if one.ended_at is not None:
                self._words[key] = found
        return found

    def _diffs(self, wanted: Iterable[IterationSummary], most: int) -> dict[int, Patch]:
        found: dict[int, Patch] = {}
        pairs: dict[int, tuple[str, str]] = {}
        for one in wanted:
            if one.tree is None or one.tree_before is None or one.tree == one.tree_before:
                continue
            if one.added is None or one.added + (one.deleted or 0) > _MOST_CHANGED:
                continue
            pair = (one.tree_before, one.tree)
            if (known := self._patches.get(pair)) is not None:
                found[one.number] = known
            else:
                pairs[one.number] = pair
        new = self._new_patches(pairs, max(20, most)) if pairs else {}
        self._patches.update({pairs[number]: patch for number, patch in new.items()})
        return found | new

    def _new_patches(self, pairs: Mapping[int, tuple[str, str]], most: int) -> dict[int, Patch]:
        store = self._store
        return patches(store.git, pairs, most) if store.folder.is_dir() else {}

    @cached_property
    def _store(self) -> Store:
        return store_to_read(self._place.tree, self._place.state, self._tools)


def _end(text: str, most: int) -> str:
    return text if len(text) <= most else f"[...] {text[-most:]}"


def _fitting(patch: Patch, budget: int, masker: Masker) -> tuple[tuple[tuple[str, str], ...], bool]:
    """Return the lines of a difference that fit, and whether some do not."""
    found: list[tuple[str, str]] = []
    for line in masker.text("\n".join(patch.lines)).split("\n") if patch.lines else ():
        text = plain_text(line)
        budget -= 30 + 3 * len(text)
        if budget < 0:
            return tuple(found), True
        found.append((_class(line), text))
    return tuple(found), patch.is_cut


def _class(line: str) -> str:
    """Return the class of a line of a difference."""
    if line.startswith(("+++", "---", "diff ", "index ", "@@", "new file", "deleted file")):
        return "h"
    return {"+": "a", "-": "d"}.get(line[:1], "")
