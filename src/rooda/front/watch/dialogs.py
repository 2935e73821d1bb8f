"""Small windows above a screen: the keys, and a question."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

_KEYS = """\
Keys of rooda watch

  Up, Down, PgUp, PgDn  move
  Enter                 open the run, or the iteration
  Esc                   back
  Tab                   from the iterations to the words
  t                     tell: a note for the next prompt
  s                     stop the run after its iteration
  S                     stop the run now
  f                     the table of the fleet
  ?                     this list
  q, Ctrl+C             quit; the run goes on

A run is also stopped with `rooda stop`, and told
something with `rooda tell`, in its folder.
"""


class HelpScreen(ModalScreen[None]):
    """Shows the keys until a key closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "dismiss", "Close"),
    ]

    def compose(self) -> ComposeResult:
        """Show the text."""
        with VerticalScroll(classes="window"):
            yield Static(_KEYS, markup=False)


class QuestionScreen(ModalScreen[bool]):
    """Asks a question that only `y` answers with yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,enter,q", "answer(False)", "No"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Show the question."""
        with VerticalScroll(classes="window"):
            yield Static(f"{self._question}\n\ny: yes   n: no", markup=False)

    def action_answer(self, is_yes: bool) -> None:  # noqa: FBT001 - Textual passes it so
        """Close the window with the answer."""
        self.dismiss(is_yes)
