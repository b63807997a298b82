"""`tacit mcp`: the library served to other programs."""

import os

import click

from tacit.base.errors import NotFound, Unwritable
from tacit.ui.cli import output
from tacit.ui.cli.command import command

_PORT = 8765


@command(
    "mcp",
    "connect",
    "Serve the library to any agent, over MCP.",
    "tacit mcp                          on standard input and output",
    "tacit mcp --project ~/work/shop    for the library of this project",
    "tacit mcp --http                   at an address of this machine, with a token",
    "tacit connect --mcp                have your agents start it by themselves",
    note="An agent searches and reads skills and facts, and proposes; what it proposes waits in the"
    " inbox, unless mcp.land is set.",
)
@click.option("--project", default="", metavar="FOLDER", help="The project; here, if left out.")
@click.option("--http", is_flag=True, help="Serve over HTTP on 127.0.0.1.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True, help="With --http."
)
def mcp_command(project: str, http: bool, port: int, as_json: bool) -> int:
    """Serve the library of a project to any agent that speaks MCP.

    Without --http one client is answered on standard input and output, until it goes: agents start
    it so. With --http the address and the token are printed; only this machine is answered.
    """
    where = os.path.abspath(os.path.expanduser(project or os.getcwd()))
    if not os.path.isdir(where):
        raise NotFound(f"there is no folder {where}", "name the project's folder")
    try:
        from tacit.ui.mcp import library_server
    except ImportError as error:
        raise NotFound(
            f"MCP needs more to be installed: {error.name}", "install it: pip install 'tacit[mcp]'"
        ) from None
    if http:
        return _serve_http(where, port, as_json)
    import anyio

    try:
        anyio.run(library_server.serve_stdio, where)
    except KeyboardInterrupt:
        return 130
    return 0


def _serve_http(project: str, port: int, as_json: bool) -> int:
    import socket

    import uvicorn

    from tacit.ui.mcp.library_server import http_app, http_token

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        hint = "another port: tacit mcp --http --port 0"
        raise Unwritable(f"port {port} cannot be had: {error.strerror}", hint) from None
    address, token = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", http_token()
    if as_json:
        output.write_json({"address": address, "token": token, "project": project})
    else:
        click.echo(f"Serving {project} at {address}\nEach request needs the header:")
        click.echo(f"  Authorization: Bearer {token}\nCtrl-C ends it.")
    config = uvicorn.Config(http_app(project, token), log_level="warning", lifespan="on")
    uvicorn.Server(config).run(sockets=[listener])
    return 0
