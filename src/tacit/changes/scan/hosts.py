"""Hosts from which people are told everywhere to pipe an installer into a shell.

Well known is not the same as safe; it says that the line is no sign of a planted one.
"""

import re

_KNOWN = frozenset(
    """
    sh.rustup.rs astral.sh get.docker.com get.k3s.io deb.nodesource.com rpm.nodesource.com
    get.helm.sh install.python-poetry.org bun.sh bun.com deno.land fnm.vercel.app get.pnpm.io
    get.sdkman.io starship.rs pyenv.run get.chezmoi.io ollama.com ollama.ai claude.ai cli.github.com
    foundry.paradigm.xyz tailscale.com fly.io install.determinate.systems nixos.org mise.run
    mise.jdx.dev opencode.ai cursor.com get.volta.sh community.chocolatey.org get.scoop.sh aka.ms
    dot.net sdk.cloud.google.com awscli.amazonaws.com packages.microsoft.com
    apt.releases.hashicorp.com dl.google.com bootstrap.pypa.io install.duckdb.org railway.com
    railway.app supabase.com get.pulumi.com run.linkerd.io istio.io dl.k8s.io get.haskellup.org
    get-ghcup.haskell.org getcomposer.org install.meteor.com release.solana.com
    release.anza.xyz sh.brew.sh brew.sh get.rvm.io cpanmin.us git.io just.systems get.jenv.be
    download.docker.com pkgs.k8s.io repo.mysql.com packages.gitlab.com packages.cloud.google.com
    apt.postgresql.org debian.org ubuntu.com python.org pixi.sh get.nexte.st setup.atuin.sh
    openclaw.ai clawd.bot docs.openclaw.ai ampcode.com install.lunarvim.org get.jetify.com
    localhost 127.0.0.1 example.com example.org
    """.split()
)
_FORGES = {"raw.githubusercontent.com", "github.com", "gist.githubusercontent.com"}
_OWNERS = frozenset(
    """
    homebrew ohmyzsh nvm-sh rbenv pyenv helm kubernetes kubernetes-sigs k3d-io k3s-io derailed
    astral-sh denoland junegunn anchore aquasecurity golangci rancher-sandbox cloudflare hashicorp
    microsoft google googlecloudplatform aws docker moby ansible direnv tj creationix rust-lang
    cargo-bins nektos trufflesecurity jesseduffield charmbracelet sigstore kubernetes-sigs tilt-dev
    """.split()
)
_HOST = re.compile(r"(?P<scheme>https?)://(?P<host>[a-z0-9.-]{1,120})(?P<path>/[^\s\"')|]{0,200})?")
_BARE = re.compile(r"(?<![\w./-])(?P<host>(?:[a-z0-9-]{1,40}\.){1,4}[a-z]{2,12})(?:/|\b)")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")


def is_known(command: str) -> bool:
    """Whether every host in `command`, in small letters, is widely known. A variable counts as one."""
    found = list(_HOST.finditer(command))
    if not found:
        bare = _BARE.search(command)
        return bare is None or _is_known_host(bare["host"], "")
    return all(_is_known_host(match["host"], match["path"] or "") for match in found)


def is_bare(command: str) -> bool:
    """Whether `command` names a machine by its number, or asks without encryption."""
    return any(
        _ADDRESS.fullmatch(match["host"]) or (match["scheme"] == "http" and "." in match["host"])
        for match in _HOST.finditer(command)
        if match["host"] not in _KNOWN
    )


def _is_known_host(host: str, path: str) -> bool:
    if host in _FORGES:
        return path.strip("/").partition("/")[0] in _OWNERS
    parts = host.split(".")
    return any(".".join(parts[i:]) in _KNOWN for i in range(len(parts) - 1)) or host in _KNOWN
