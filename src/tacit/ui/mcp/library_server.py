"""The MCP server: the protocol's requests, answered from the library of one project.

Both eras of the protocol are spoken, by the official SDK. Work is done in threads, so that a client
that asks while the library is busy is not kept waiting. Over HTTP only this machine is answered,
and only with the token.
"""

import hmac
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from tacit import __version__
from tacit.agent.activation import render
from tacit.agent.tool import Failed
from tacit.base import paths
from tacit.base.atomic_files import kept_token
from tacit.base.errors import TacitError
from tacit.skills.library import KeptLibrary
from tacit.ui.cli.servers import is_of_another
from tacit.ui.mcp import skill_resources
from tacit.ui.mcp.client_tools import CLIENT_TOOLS, TOOLS_BY_NAME, ClientTool, Desk, call_tool

if TYPE_CHECKING:
    from starlette.applications import Starlette

INSTRUCTIONS = (
    "Tacit keeps what was worked out in earlier sessions with this user as skills."
    " Before a task of several steps, call search_skills with the task in a few words; if one fits,"
    " read_skill and follow it, then report_outcome. What you found out by trying and will be of"
    " use again: propose_skill, or propose_edit where a skill was wrong. What the user says of"
    " themselves or the project: remember; recall reads it."
)
_TTL_MS = 60_000
T = TypeVar("T")


class PageParams(types.RequestParams):
    cursor: str | None = None


class UriParams(types.RequestParams):
    uri: str


def make_server(project: str) -> "Server[Any]":
    """A server for the library of `project`."""
    answers = _Answers(project)
    server: Server[Any] = Server(
        "tacit",
        version=__version__,
        title="Tacit",
        instructions=INSTRUCTIONS,
        on_list_tools=answers.list_tools,
        on_call_tool=answers.call_tool,
        on_list_prompts=answers.list_prompts,
        on_get_prompt=answers.get_prompt,
        on_list_resources=answers.list_resources,
        on_list_resource_templates=answers.list_templates,
        on_read_resource=answers.read_resource,
    )
    server.extensions[skill_resources.SKILLS_EXTENSION] = {"directoryRead": True}
    server.add_request_handler("skills/list", PageParams, answers.list_skills)
    server.add_request_handler("skills/get", UriParams, answers.get_skill)
    server.add_request_handler("resources/directory/read", UriParams, answers.read_directory)
    return server


async def serve_stdio(project: str) -> None:
    """Answer one client on standard input and output until it goes."""
    server = make_server(project)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def http_app(project: str, token: str) -> "Starlette":
    """The same over HTTP at /mcp: only for who names this machine and knows the token."""
    app = make_server(project).streamable_http_app()
    app.add_middleware(_TokenGuard, token=token)
    return app


class _TokenGuard:
    """Lets requests through that bring the token."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        stranger = is_of_another(scope.get("client"), scope.get("server"))
        known = hmac.compare_digest(given, self._wanted) and not stranger
        if scope["type"] == "lifespan" or known:
            await self._app(scope, receive, send)
            return
        headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def http_token() -> str:
    """The token of this user's server, made at the first start."""
    return kept_token(os.path.join(paths.folders().data, "mcp.token"))


class _Answers:
    """What each request gets."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._kept = KeptLibrary(project)

    async def list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in CLIENT_TOOLS])

    async def call_tool(
        self, ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in TOOLS_BY_NAME:
            known = ", ".join(TOOLS_BY_NAME)
            raise MCPError(types.INVALID_PARAMS, f"There is no tool '{params.name}': {known}")
        desk = Desk(self._project, _client(ctx), self._kept)
        answer = await _in_thread(lambda: call_tool(params.name, params.arguments or {}, desk))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)],
            structured_content=msgspec.to_builtins(answer.data) if answer.data else None,
            is_error=answer.failed,
        )

    async def list_prompts(self, ctx: Any, params: Any) -> types.ListPromptsResult:
        library = await _in_thread(self._library)
        entries = [entry for entry in library.active() if entry.user_invocable]
        shown, more = _page(entries, params)
        about = types.PromptArgument(name="arguments", description="What the skill is given.")
        prompts = [
            types.Prompt(name=e.name, description=e.description, arguments=[about]) for e in shown
        ]
        return types.ListPromptsResult(prompts=prompts, next_cursor=more)

    async def get_prompt(
        self, ctx: Any, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        def text() -> tuple[str, str]:
            library = self._library()
            entry = library.find(params.name)
            if entry is None or entry.state != "active" or not entry.user_invocable:
                raise Failed(f"There is no skill '{params.name}' to start here.")
            arguments = (params.arguments or {}).get("arguments", "")
            return entry.description, render(library, entry.name, arguments, {})[0]

        about, said = await _in_thread(text)
        content = types.TextContent(type="text", text=said)
        message = types.PromptMessage(role="user", content=content)
        return types.GetPromptResult(description=about, messages=[message])

    async def list_resources(self, ctx: Any, params: Any) -> types.ListResourcesResult:
        library = await _in_thread(self._library)
        shown, more = _page(skill_resources.served(library), params)
        found = [
            types.Resource(
                name=e.name,
                uri=skill_resources.skill_uri(e.name),
                description=e.description,
                mime_type="text/markdown",
            )
            for e in shown
        ]
        return types.ListResourcesResult(resources=found, next_cursor=more)

    async def list_templates(self, ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="skill-file",
            uri_template="skill://{name}/{+path}",
            description="A file of a skill; SKILL.md is the skill itself.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, ctx: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        def read() -> dict[str, Any]:
            address = skill_resources.parse_uri(str(params.uri))
            entry = skill_resources.served_skill(self._library(), address.name)
            data = skill_resources.read_file(entry, address.path or "SKILL.md")
            return skill_resources.contents(str(params.uri), data)

        return types.ReadResourceResult.model_validate({"contents": [await _in_thread(read)]})

    async def list_skills(self, ctx: Any, params: PageParams) -> dict[str, Any]:
        def read() -> dict[str, Any]:
            shown, more = _page(skill_resources.served(self._library()), params)
            found = [skill for entry in shown if (skill := skill_resources.extension_skill(entry))]
            return _complete(skills=found, **({"nextCursor": more} if more else {}))

        return await _in_thread(read)

    async def get_skill(self, ctx: Any, params: UriParams) -> dict[str, Any]:
        def read() -> dict[str, Any]:
            address = skill_resources.parse_uri(params.uri)
            entry = skill_resources.served_skill(self._library(), address.name)
            skill = skill_resources.extension_skill(entry)
            if skill is None or params.uri != skill["uri"]:
                raise Failed(f"There is no skill at '{params.uri}'.")
            return _complete(skill=skill)

        return await _in_thread(read)

    async def read_directory(self, ctx: Any, params: UriParams) -> dict[str, Any]:
        def read() -> dict[str, Any]:
            address = skill_resources.parse_uri(params.uri)
            entry = skill_resources.served_skill(self._library(), address.name)
            return _complete(resources=skill_resources.directory(entry, address.path))

        return await _in_thread(read)

    def _library(self) -> Any:
        return self._kept.now()


def _described(tool: ClientTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=_schema(tool.arguments),
        output_schema=_schema(tool.result),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.writes,
            destructive_hint=False,
            idempotent_hint=not tool.writes,
            open_world_hint=False,
        ),
    )


def _schema(form: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a struct, an object at its root."""
    whole = msgspec.json.schema(form)
    known = dict(whole["$defs"])
    root = {key: value for key, value in known.pop(form.__name__).items() if key != "title"}
    return {**root, "$defs": known} if known else root


def _client(ctx: Any) -> str:
    """How the client calls itself."""
    params = ctx.session.client_params
    return params.client_info.name if params is not None else ""


def _page(items: list[Any], params: Any) -> tuple[Any, str | None]:
    try:
        return skill_resources.page(items, getattr(params, "cursor", None))
    except Failed as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from None


def _complete(**fields: Any) -> dict[str, Any]:
    return {"resultType": "complete", **fields, "ttlMs": _TTL_MS, "cacheScope": "private"}


async def _in_thread(work: Callable[[], T]) -> T:
    """What `work` gives, away from the loop; what it says is wrong is the client's to read."""
    try:
        return await anyio.to_thread.run_sync(work)
    except Failed as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from None
    except TacitError as error:
        raise MCPError(types.INTERNAL_ERROR, error.explain()) from None
