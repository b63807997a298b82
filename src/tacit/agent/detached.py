"""Running a stream of events in a task of its own.

A time limit inside a generator would strike whoever happens to read from it, in the middle of code
that knows nothing of it. In a task of its own it strikes only the generator; and who stops reading,
or is cancelled, ends that task before going on.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TypeVar

T = TypeVar("T")


async def detached(source: AsyncIterator[T]) -> AsyncGenerator[T, None]:
    """The items of `source`, made ahead of the reader; what it raises is raised here at the end."""
    queue: asyncio.Queue[T | None] = asyncio.Queue()

    async def produce() -> None:
        try:
            async for item in source:
                queue.put_nowait(item)
        finally:
            queue.put_nowait(None)

    task = asyncio.create_task(produce())
    try:
        while (item := await queue.get()) is not None:
            yield item
        await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
