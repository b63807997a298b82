"""`tacit mcp` and `tacit web`: the library served to other programs, and pages for a browser."""

import errno
import os
import socket
import sys
from ipaddress import IPv4Address, IPv6Address, ip_address

import click

from tacit.base.errors import NotFound, Unwritable, Usage
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
            f"MCP needs more to be installed ({error.name} is not there)",
            "install it: pip install 'tacit[mcp]'",
        ) from None
    if http:
        return _serve_http(where, port, as_json)
    import anyio

    try:
        anyio.run(library_server.serve_stdio, where)
    except KeyboardInterrupt:
        return 130
    return 0


def open_listener(host: str, port: int, *, or_any: bool = False) -> socket.socket:
    """A socket for a server; `or_any`: any free port where that one is taken."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for wanted in (port, 0) if or_any else (port,):
        try:
            listener.bind((host, wanted))
            listener.listen()  # who comes before the server answers waits, and is not refused
            return listener
        except OSError as error:
            cause = error
    listener.close()
    elsewhere = isinstance(cause, socket.gaierror) or cause.errno == errno.EADDRNOTAVAIL
    hint = "name an address of this machine" if elsewhere else "any that is free: --port 0"
    raise Unwritable(f"port {port} of {host} cannot be had: {cause.strerror}", hint)


Address = tuple[str, int]
_OPEN, _LISTENS = "01", "0A"
"""States in /proc/net/tcp: both ends are open; somebody is waited for."""


def is_of_another(client: Address | None, server: Address | None) -> bool:
    """Whether another user of this machine asks; False where the system does not tell.

    They may know the token: while the server is not there, anybody can listen at its port, and is
    told it by a page or a client that asks again.
    """
    try:
        if client is None or server is None or not _ip(client[0]).is_loopback:
            return False
        wanted = [_as_listed(client), _as_listed(server)]
        rows = [row.split() for row in _connections()]
    except (OSError, ValueError):
        return False
    for row in rows:
        if row[1:3] == wanted:  # of a socket that was let go, root seems to be the owner
            owner = int(row[7])
            return owner not in (0, os.getuid()) or (owner == 0 and row[3] != _OPEN)
    # Who hung up is not answered, unless this table does not even have us in it.
    return any(row[3] == _LISTENS and row[1].endswith(f":{server[1]:04X}") for row in rows)


def _connections() -> list[str]:
    found = []
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(name):
            with open(name, encoding="ascii") as file:
                found += file.readlines()[1:]
    return found


def _ip(text: str) -> IPv4Address | IPv6Address:
    found = ip_address(text)
    return getattr(found, "ipv4_mapped", None) or found


def _as_listed(address: Address) -> str:
    packed = _ip(address[0]).packed
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    shown = "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
    return f"{shown}:{address[1]:04X}"


def _serve_http(project: str, port: int, as_json: bool) -> int:
    import uvicorn

    from tacit.ui.mcp.library_server import http_app, http_token

    listener = open_listener("127.0.0.1", port)
    address, token = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", http_token()
    if as_json:
        output.write_json({"address": address, "token": token, "project": project})
    else:
        click.echo(f"Serving {project} at {address}\nEach request needs the header:")
        click.echo(f"  Authorization: Bearer {token}\nCtrl-C ends it.")
    app = http_app(project, token)
    config = uvicorn.Config(app, log_level="warning", lifespan="on", proxy_headers=False)
    uvicorn.Server(config).run(sockets=[listener])
    return 0


@command(
    "web",
    "find",
    "Look at skills, proposals, sessions and cost in a browser.",
    "tacit web                          start it, and open the browser",
    "tacit web --no-open                only print the address",
    note="It goes when this terminal does. A second start opens the first.",
)
@click.option("--no-open", is_flag=True, help="Print the address; open no browser.")
@click.option("--port", type=click.IntRange(0, 65535), default=None, help="Instead of 8766.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--let-others-in", is_flag=True, help="With --host: other machines may connect.")
def web_command(
    no_open: bool, port: int | None, host: str, let_others_in: bool, as_json: bool
) -> int:
    """Look at skills, proposals, sessions, jobs and cost in a browser, and answer the inbox there.

    The pages are served on this machine alone, to the browser that opens the printed address.
    """
    if host not in ("127.0.0.1", "::1", "localhost") and not let_others_in:
        raise Usage(
            f"{host} can be reached by other machines, and what they send is not encrypted",
            "leave --host out, or add --let-others-in if you want that",
        )
    try:
        from tacit.ui.web import web_server
    except ImportError as error:
        raise NotFound(
            f"the pages need more to be installed ({error.name} is not there)",
            "install it: pip install 'tacit[web]'",
        ) from None
    if running := web_server.running_address():
        _tell_address(running, no_open, as_json, "It runs already")
        return 0
    server = web_server.PageServer("127.0.0.1" if host == "localhost" else host, port)
    _tell_address(server.new_address(), no_open, as_json, "Tacit is at")
    if not as_json:
        click.echo("Ctrl-C ends it.")
    server.run()
    return 0


def _tell_address(address: str, no_open: bool, as_json: bool, how: str) -> None:
    if as_json:
        output.write_json({"address": address})
        return
    click.echo(f"{how}: {address}")
    if no_open:
        return
    if _can_open():
        click.launch(address)
        return
    port = address.partition("/?")[0].rpartition(":")[2]
    click.echo("There is no screen here to open a browser on. The address opens, once, in yours:")
    click.echo(f"  over ssh        ssh -L {port}:127.0.0.1:{port} {socket.gethostname()}")
    click.echo(f"  in a container  publish port {port}; tacit web --host 0.0.0.0 --let-others-in")


def _can_open() -> bool:
    """Whether a browser with windows can be started here; one of text would take the terminal."""
    if sys.platform == "darwin":
        return "SSH_CONNECTION" not in os.environ
    return any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"))
