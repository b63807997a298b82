"""MCP servers from the settings, as extra tools.

The connections live in a thread with a loop of its own: they outlast the answer that opened them,
an interrupt by the user cannot tear one apart, and their libraries are imported beside the rest.
The tools are asked for once, before the first request, and stay as they are. A server that does not
start is reported, not fatal. One that dies, stalls or is interrupted later fails that call; the
connection is given up, and the next call makes a new one. At each start it is asked whether the
server of a project is still what the user allowed.
"""

import asyncio
import contextlib
import logging
import os
import re
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from tacit.agent.tool import Context, Failed, Result, Tool
from tacit.base.display import shorten
from tacit.base.paths import find_program
from tacit.base.setting_sections import McpServer
from tacit.base.settings import may_start, project_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_LEAVING = 10.0
"""Seconds that programs have to end; one that does not react is killed long before."""
_SILENT = logging.NullHandler()
ClientCall = Callable[[Any], Awaitable[Any]]
"""What is to be done with a client."""


class _Anything(msgspec.Struct, frozen=True):
    """Arguments that the server checks, not we."""

    given: dict[str, Any]


class RemoteTool(Tool, frozen=True):
    """A tool of a server. It asks first: what it does is not known here."""

    parameters: dict[str, Any] = msgspec.field(default_factory=dict)

    def schema(self) -> dict[str, Any]:
        return self.parameters or {"type": "object", "properties": {}}

    def takes(self) -> None:
        return None

    def check(self, arguments: dict[str, Any]) -> _Anything:
        return _Anything(arguments)


class Servers:
    """The servers of a session, connected when they are first needed."""

    def __init__(self, chosen: "Mapping[str, McpServer]") -> None:
        self._connections = [_Connection(name, server) for name, server in chosen.items()]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
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
        """End the connections, and with them the programs. Safe to call again."""
        if self._loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None

    async def _end(self) -> None:
        leaving = {task for each in self._connections for task in each.leave()}
        if leaving:
            await asyncio.wait(leaving, timeout=_LEAVING)

    async def _ask(self, connection: "_Connection") -> list[Tool]:
        try:
            listed = await self._do(connection, lambda client: client.list_tools())
        except Failed as failed:
            self.troubles.append(str(failed))
            return []
        return [self._tool(connection, tool) for tool in listed.tools]

    def _tool(self, connection: "_Connection", found: Any) -> Tool:
        async def run(call: _Anything, context: Context) -> Result:
            answer = await self._do(connection, lambda c: c.call_tool(found.name, call.given))
            text = "\n".join(_text(block) for block in answer.content)
            return Result(context.shorten(text) or "[done]", failed=bool(answer.is_error))

        name = _NAME.sub("_", f"mcp__{connection.name}__{found.name}")[:_LONGEST_NAME]
        about = f"{found.description or found.name} (server {connection.name})"
        return RemoteTool(name, about, _Anything, run, "write", parameters=found.input_schema)

    async def _do(self, connection: "_Connection", work: ClientCall) -> Any:
        """Have `work` done in the servers' loop; cancelled, it ends there. Raises `Failed`."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
            self._thread.start()
        doing = asyncio.run_coroutine_threadsafe(connection.do(work), self._loop)
        return await asyncio.wrap_future(doing)


class _Connection:
    """One server, as it is seen from the loop of the servers."""

    def __init__(self, name: str, server: McpServer) -> None:
        self.name = name
        self._server = server
        self._life: _Lifetime | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    async def do(self, work: ClientCall) -> Any:
        """Do `work` with the client, within the server's time. Raises `Failed`."""
        if self._life is None or self._life.task.done():
            self._life = _Lifetime(self._live)
        try:
            async with asyncio.timeout(self._server.seconds):
                client = await self._life.result_or_end(self._life.ready)
                told = await self._life.result_or_end(asyncio.ensure_future(work(client)))
        except TimeoutError:
            self.leave()
            why = f"no answer in {self._server.seconds:g} s"
            raise Failed(f"the MCP server '{self.name}' failed: {why}") from None
        except asyncio.CancelledError:
            self.leave()
            raise
        except Exception as error:
            self.leave()
            raise Failed(f"the MCP server '{self.name}' failed: {_cause(error)}") from None
        return told

    def leave(self) -> "set[asyncio.Task[None]]":
        """Give the connection up, dead or busy for ever as it may be; those on their way out."""
        if self._life is not None:
            self._leaving.add(self._life.task)
            self._life.task.add_done_callback(self._leaving.discard)
            self._life.end()
            self._life = None
        return set(self._leaving)

    async def _live(self, ready: "asyncio.Future[Any]", over: asyncio.Event) -> None:
        """Connect, and stay so until it is over."""
        try:
            from mcp import Client
        except ImportError:
            raise Failed("pip install 'tacit[mcp]'") from None
        # What goes wrong is told as a failed call; its log would break up the user's screen.
        logging.getLogger("mcp").addHandler(_SILENT)
        async with contextlib.AsyncExitStack() as stack:
            ready.set_result(await stack.enter_async_context(Client(self._target(stack))))
            await over.wait()

    def _target(self, stack: contextlib.AsyncExitStack) -> Any:
        server = self._server
        if not may_start(self.name, server):
            raise Failed(
                f"{server.file}, or a file that it is started with, has changed since the user"
                f" allowed it; they can look, and allow it again: tacit trust --server {self.name}"
            )
        if server.url:
            return server.url
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        # The user's own is not looked for in a project; of a project's, all files were looked at.
        found = "" if server.file else find_program(server.command)
        how = StdioServerParameters(
            command=found or server.command,
            args=list(server.args),
            env=server.env or None,
            cwd=project_of(server.file) if server.file else None,  # its files are looked for there
        )
        # What a server writes to standard error would break up the user's screen.
        silence = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        return stdio_client(how, errlog=silence)


class _Lifetime:
    """A connection from its opening to its end, both in one task: the client asks for that."""

    def __init__(self, live: Callable[["asyncio.Future[Any]", asyncio.Event], Any]) -> None:
        self.ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        self.task: asyncio.Task[None] = asyncio.create_task(live(self.ready, self._over))

    async def result_or_end(self, wanted: "asyncio.Future[Any]") -> Any:
        """What `wanted` gives; raises why the connection ended, if it ends before."""
        try:
            await asyncio.wait({wanted, self.task}, return_when=asyncio.FIRST_COMPLETED)
            if not wanted.done():
                self.task.result()
                raise Failed("it has ended")
            return wanted.result()
        finally:
            wanted.cancel()

    def end(self) -> None:
        """Once. A connection that is open is closed in order: cancelled, it could leave its program
        behind."""
        self.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        if self.ready.done() and not self.ready.cancelled():
            self._over.set()
        else:
            self.task.cancel()


def _text(block: Any) -> str:
    return str(getattr(block, "text", None) or f"[{getattr(block, 'type', 'something')}]")


def _cause(error: BaseException) -> str:
    """The innermost of errors in groups: the outer ones say nothing."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return shorten(" ".join(f"{error}".split()), 300) or type(error).__name__
