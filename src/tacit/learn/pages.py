"""The rest of a session, page by page, for a reviewer who wants more than the digest shows."""

import msgspec

from tacit.learn.digest_blocks import LONG, Block, Fence, blocks
from tacit.traces.trace import Trace

PAGE = 8000
"""Characters of a page, about."""


class Pages(msgspec.Struct, frozen=True):
    """A session cut into pages. `starts` has the first step of each."""

    texts: tuple[str, ...]
    starts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def page_of(self, step: str) -> int:
        """The number of the page, from 1, on which `step` begins."""
        wanted = _order(step)
        found = 1
        for number, start in enumerate(self.starts, 1):
            if _order(start) > wanted:
                break
            found = number
        return found


def pages(trace: Trace, size: int = PAGE) -> Pages:
    """`trace` in pages of about `size` characters. The same trace gives the same pages."""
    fence = Fence(trace)
    texts: list[list[str]] = [[]]
    starts: list[str] = []
    used = 0
    for block in blocks(trace, LONG):
        for part in _parts(block, size):
            shown = fence.around(part)
            if texts[-1] and used + len(shown) > size:
                texts.append([])
                used = 0
            if not texts[-1]:
                starts.append(part.step)
            texts[-1].append(shown)
            used += len(shown) + 1
    if not texts[0]:
        return Pages((), ())
    return Pages(tuple("\n".join(page) for page in texts), tuple(starts))


def _parts(block: Block, size: int) -> list[Block]:
    """A block that is longer than a page in several, each between marks of its own."""
    if len(block.body) <= size:
        return [block]
    bodies = [block.body[at : at + size] for at in range(0, len(block.body), size)]
    replace = msgspec.structs.replace
    return [
        replace(
            block, body=body, title=f"{block.title}, part {number} of {len(bodies)}".strip(", ")
        )
        for number, body in enumerate(bodies, 1)
    ]


def _order(step: str) -> tuple[int, int]:
    turn, _, number = step.partition(".")
    return int(turn), int(number or 0)
