"""What the timeline and the plots of the page share. Pure.

`x` and `width` are percentages of the width, `y` and `height` are pixels: so a drawing fits any
width, and its text keeps its size.
"""

from msgspec import Struct

DIGIT, LETTER = 6.6, 6.4  # pixels
_GAP = 5.0  # pixels between two labels
_EDGE = 8.0  # pixels that a text may stand out


class PlotLabel(Struct, frozen=True):
    """A text on the timeline or below a plot; `width` is that of a plate behind it, in pixels."""

    text: str
    x: float
    anchor: str = "middle"
    width: float = 0.0
    is_failed: bool = False


class Scale:
    """A line of the timeline or the axis of a plot: places become percentages of its width."""

    def __init__(self, start: float, end: float, pixels: float) -> None:
        self.start, self.end, self.pixels = start, end, pixels
        self._taken: dict[str, list[tuple[float, float]]] = {}

    def x(self, place: float) -> float:
        """Return a place between start and end in percent; one beyond is at the edge."""
        inside = min(max(place, self.start), self.end)
        return percent((inside - self.start) / (self.end - self.start))

    def has_room(self, where: str, text: str, x: float, letter: float) -> bool:
        """Take the room for a text, if it is free."""
        middle, half = x * self.pixels / 100, len(text) * letter / 2
        if middle - half < -_EDGE or middle + half > self.pixels + _EDGE:
            return False
        taken = self._taken.setdefault(where, [])
        left, right = middle - half - _GAP / 2, middle + half + _GAP / 2
        if any(left < other[1] and right > other[0] for other in taken):
            return False
        taken.append((left, right))
        return True


def percent(part: float) -> float:
    """Return a part of 1 in percent."""
    return round(100 * part, 3)


def rounded(number: float) -> float:
    """Return a number with three digits after the point: more make the page longer."""
    return round(number, 3)
