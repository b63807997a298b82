"""The tool that looks into earlier sessions, of this agent and of others."""

import asyncio

import msgspec

from tacit.agent.tools.tool import Context, Failed, Result, Tool
from tacit.base.errors import TacitError
from tacit.traces.store import Hit, Store


class SearchSessions(msgspec.Struct, frozen=True):
    query: str
    everywhere: bool = False
    limit: int = 8


async def search_sessions(call: SearchSessions, context: Context) -> Result:
    def find() -> list[Hit]:
        where = "" if call.everywhere else context.project
        with Store.open() as store:
            return store.search(call.query, project=where, limit=max(1, min(call.limit, 50)))

    try:
        hits = await asyncio.to_thread(find)
    except TacitError as error:
        raise Failed(f"{error.message}; {error.hint}") from None
    rows = [_row(hit) for hit in hits]
    return Result(context.shorten("\n".join(rows)) or "(no session fits)")


def _row(hit: Hit) -> str:
    when = f"{hit.at:%Y-%m-%d}" if hit.at else "undated"
    return f"- {hit.id}, turn {hit.turn}, {when}: {' '.join(hit.snippet.text.split())}"


TOOLS = (
    Tool(
        "search_sessions",
        "Find earlier sessions in this project (or everywhere) in which all the words stand.",
        SearchSessions,
        search_sessions,
    ),
)
