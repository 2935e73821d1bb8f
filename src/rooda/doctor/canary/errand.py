"""What the canary is asked to do, and how to tell that it was done. Pure, but for chance."""

import secrets
from dataclasses import dataclass

from rooda.prompts.compose import promise_tag

WRITTEN, COMMANDED = "canary-written.txt", "canary-command.txt"
_SIZE = 20_000  # bytes: more than any pipe or line buffer would let through by luck
_POLYNOMIAL = 0x04C11DB7
_TOP, _WHOLE = 0x80000000, 0xFFFFFFFF

_HEAD = """\
This is a test of the command that starts you, in an empty repository. Do these four things, one
after the other, and nothing else. Nobody is there to answer a question.

1. Write a file named {written} in the current folder with your own tool for writing files, not
   with a shell command. Its only content is this word:
   {word}
2. Run this shell command, exactly as it is:
   {command}
3. This prompt is long on purpose, and its very last line is a mark. Repeat that mark in your
   answer, exactly as it is. It begins with `mark-`.
4. When all of this is done, end your answer with this on a line of its own: {tag}

If you are not allowed to do one of them, say which one and why, and do the others all the same.

What follows has no meaning. It only makes the prompt long.

"""
_FILLER = "Line {number}: nothing to do here, the mark is on the very last line of this prompt.\n"


@dataclass(frozen=True, slots=True)
class Errand:
    """Random words, so that nothing can be right by chance or from memory."""

    word: str
    seed: str
    mark: str
    signal: str

    @classmethod
    def new(cls, signal: str) -> "Errand":
        """A new one; `signal` is the word for success."""
        word, seed, mark = (secrets.token_hex(8) for _ in range(3))
        return cls(word, seed, f"mark-{mark}", signal)

    @property
    def command(self) -> str:
        """A command whose result nobody can write by hand: a checksum."""
        return f"printf %s {self.seed} | cksum > {COMMANDED}"

    def prompt(self) -> str:
        """The prompt, with the mark at its very end."""
        tag = promise_tag(self.signal)
        text = _HEAD.format(written=WRITTEN, word=self.word, command=self.command, tag=tag)
        number = 0
        while len(text) < _SIZE:
            number += 1
            text += _FILLER.format(number=number)
        return f"{text}{self.mark}\n"

    def read(self, iteration: int) -> str:  # noqa: ARG002 - the form of a prompt's template
        """The same, as the loop asks for it."""
        return self.prompt()

    def is_written(self, content: bytes) -> bool:
        """Whether this is the word that was to be written."""
        return content.strip() == self.word.encode()

    def is_commanded(self, content: bytes) -> bool:
        """Whether this is what the command prints."""
        return content.split()[:1] == [str(cksum(self.seed.encode())).encode()]

    def is_repeated(self, speech: bytes) -> bool:
        """Whether the mark is in what the agent said."""
        return self.mark.encode() in speech


def cksum(data: bytes) -> int:
    """The checksum of POSIX, which every system has a command for."""
    size = len(data)
    length = size.to_bytes((size.bit_length() + 7) // 8, "little")
    crc = 0
    for byte in data + length:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1) ^ (_POLYNOMIAL if crc & _TOP else 0)
            crc &= _WHOLE
    return crc ^ _WHOLE
