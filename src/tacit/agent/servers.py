"""MCP servers from the settings, as extra tools.

Each connection lives in a task of its own, because the client must be closed where it was opened;
calls reach it by a queue. The tools are asked for once, before the first request, and stay as they
are: a server that dies later fails its calls. One that does not start is reported, not fatal.
"""

import asyncio
import contextlib
import os
import re
from typing import TYPE_CHECKING, Any

import msgspec

from tacit.agent.tools.tool import Context, Failed, Result, Tool
from tacit.base.sections import McpServer

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


class _Anything(msgspec.Struct, frozen=True):
    """Arguments that the server checks, not we."""

    given: dict[str, Any]


class RemoteTool(Tool, frozen=True):
    """A tool of a server. It asks first: what it does is not known here."""

    parameters: dict[str, Any] = msgspec.field(default_factory=dict)

    def schema(self) -> dict[str, Any]:
        return self.parameters or {"type": "object", "properties": {}}

    def check(self, arguments: dict[str, Any]) -> _Anything:
        return _Anything(arguments)


class Servers:
    """The servers of a session, connected when they are first needed."""

    def __init__(self, chosen: "Mapping[str, McpServer]") -> None:
        self._connections = [_Connection(name, server) for name, server in chosen.items()]
        self._tools: list[Tool] | None = None
        self.troubles: list[str] = []
        """What went wrong at the start, in words; whoever tells the user empties it."""

    async def tools(self) -> list[Tool]:
        """The tools of all servers that answer; the same list every time."""
        if self._tools is None:
            several = await asyncio.gather(*(self._ask(each) for each in self._connections))
            self._tools = [tool for tools in several for tool in tools]
        return self._tools

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    async def _ask(self, connection: "_Connection") -> list[Tool]:
        try:
            return await connection.tools()
        except Failed as failed:
            self.troubles.append(str(failed))
            return []


class _Connection:
    def __init__(self, name: str, server: McpServer) -> None:
        self.name = name
        self._server = server
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: asyncio.Queue[tuple[Any, asyncio.Future[Any]]] = asyncio.Queue()

    async def tools(self) -> list[Tool]:
        """What the server offers. Raises `Failed`."""
        listed = await self._do(lambda client: client.list_tools())
        return [self._tool(tool) for tool in listed.tools]

    def close(self) -> None:
        if self._task is not None and self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._task.cancel)

    def _tool(self, found: Any) -> Tool:
        async def run(call: _Anything, context: Context) -> Result:
            told = await self._do(lambda client: client.call_tool(found.name, call.given))
            text = "\n".join(_text(block) for block in told.content)
            return Result(context.shorten(text) or "[done]", failed=bool(told.is_error))

        name = _NAME.sub("_", f"mcp__{self.name}__{found.name}")[:_LONGEST_NAME]
        about = f"{found.description or found.name} (server {self.name})"
        return RemoteTool(name, about, _Anything, run, "write", parameters=found.input_schema)

    async def _do(self, work: Any) -> Any:
        """Have the connection's task do `work`, within the server's time. Raises `Failed`."""
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done() or self._loop is not loop:
            self._loop, self._queue = loop, asyncio.Queue()
            self._task = loop.create_task(self._live(self._queue))
        answer: asyncio.Future[Any] = loop.create_future()
        self._queue.put_nowait((work, answer))
        try:
            async with asyncio.timeout(self._server.seconds):
                await asyncio.wait({answer, self._task}, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            why = f"no answer in {self._server.seconds:g} s"
            raise Failed(f"the MCP server '{self.name}' failed: {why}") from None
        try:
            return answer.result() if answer.done() else self._task.result()
        except asyncio.CancelledError:
            raise Failed(f"the MCP server '{self.name}' has ended") from None
        except Exception as error:
            raise Failed(f"the MCP server '{self.name}' failed: {_cause(error)}") from None

    async def _live(self, queue: "asyncio.Queue[tuple[Any, asyncio.Future[Any]]]") -> None:
        """Connect, and do what comes in, until cancelled."""
        try:
            from mcp import Client
        except ImportError:
            raise Failed("pip install 'tacit[mcp]'") from None
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(self._target(stack)))
            while True:
                work, answer = await queue.get()
                try:
                    told = await work(client)
                except Exception as error:
                    if not answer.done():
                        answer.set_exception(error)
                else:
                    if not answer.done():
                        answer.set_result(told)

    def _target(self, stack: contextlib.AsyncExitStack) -> Any:
        if self._server.url:
            return self._server.url
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        how = StdioServerParameters(
            command=self._server.command, args=list(self._server.args), env=self._server.env or None
        )
        # What a server writes to standard error would break up the user's screen.
        silence = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        return stdio_client(how, errlog=silence)


def _text(block: Any) -> str:
    return str(getattr(block, "text", None) or f"[{getattr(block, 'type', 'something')}]")


def _cause(error: BaseException) -> str:
    """The innermost of errors in groups: the outer ones say nothing."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return " ".join(f"{error}".split())[:300] or type(error).__name__
