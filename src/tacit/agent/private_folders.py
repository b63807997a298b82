"""Which folders of the machine are somebody's own, and what a command sees of them all the same.

Homes, other disks and whatever else is no part of the system are hidden whole: other projects with
their `.env`, other agents' transcripts, credentials, histories. Of them a command sees the project,
the places where languages keep programs and packages, settings of build tools that hold no secret,
and the user's skills; a setting adds more. `sandbox.py` enforces it.
"""

import os
import pwd
import re
import sys
from collections.abc import Iterable

from tacit.agent.off_limits import CommandRules
from tacit.agent.project_survey import git_folders
from tacit.base import paths, secrets
from tacit.base.paths import is_inside
from tacit.traces.host_folders import host_folders

# In the topmost folder: what belongs to the system.
_SYSTEM = {
    "bin", "boot", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "lost+found", "nix",
    "opt", "proc", "run", "sbin", "snap", "sys", "tmp", "usr", "var",
    "Applications", "Library", "System", "cores", "private",
}  # fmt: skip
_OF_PEOPLE = (
    "/var/mail", "/var/spool", "/var/backups", "/var/www",
    "/var/tmp",  # noqa: S108 - nothing is put there
)  # fmt: skip
# Below a home: programs, and what package managers have downloaded.
_FOR_BUILDS = (
    ".pyenv", ".rbenv", ".nodenv", ".nvm", ".volta", ".fnm", ".asdf", ".rustup", ".cargo/bin",
    ".cargo/registry", ".cargo/git", ".cargo/env", ".bun/bin", ".bun/install", ".deno/bin",
    ".sdkman", ".jenv", ".jdks", ".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx",
    ".local/share/uv", ".local/share/pnpm", ".local/share/mise", ".local/share/fnm",
    ".local/share/virtualenvs", ".local/share/virtualenv", ".local/share/hatch", ".nix-profile",
    "miniconda3", "anaconda3", "miniforge3", "mambaforge", ".conda/envs", ".conda/pkgs",
    "go/bin", "go/pkg", "sdk", ".npm-global", ".npm/_cacache", ".npm/_npx", ".yarn/berry",
    ".pnpm-store", ".linuxbrew", ".m2/repository", ".m2/wrapper", ".gradle/caches",
    ".gradle/wrapper", ".gradle/jdks", ".ivy2/cache", ".ivy2/local", ".sbt/boot",
    ".sbt/launchers", ".nuget/packages", ".dotnet", ".gem/ruby", ".bundle/cache", ".opam",
    ".ghcup", ".cabal/bin", ".cabal/packages", ".cabal/store", ".stack", ".mix", ".hex/packages",
    ".pub-cache", ".conan2/p", ".composer/vendor", ".config/composer/vendor", ".ccache",
    ".terraform.d/plugin-cache", "Library/Caches/pip", "Library/Caches/go-build", "Library/pnpm",
    "Android/Sdk", "Library/Android/sdk",
    *(
        f".cache/{name}"
        for name in (
            "pip", "uv", "yarn", "pnpm", "pypoetry", "pre-commit", "go-build", "deno", "ccache",
            "sccache", "bazel", "bazelisk", "node", "node-gyp", "electron", "electron-builder",
            "ms-playwright", "Cypress", "puppeteer", "huggingface/hub", "huggingface/datasets",
            "torch", "hatch", "coursier", "zig", "turbo", "mise", "composer", "rattler",
        )
    ),
)  # fmt: skip
# Below a home: settings of build tools, shown where no secret stands in them.
_TOOL_SETTINGS = (
    ".gitconfig", ".config/git/config", ".config/git/ignore", ".gitignore", ".gitignore_global",
    ".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/uv.toml", ".cargo/config.toml",
    ".condarc", ".config/go/env", ".bazelrc", ".config/pypoetry/config.toml",
)  # fmt: skip
TOOL_VARIABLES = (
    "CARGO_HOME", "CONDA_PREFIX", "DOTNET_ROOT", "GOMODCACHE", "GOPATH", "GOROOT", "JAVA_HOME",
    "NVM_DIR", "PNPM_HOME", "PYENV_ROOT", "RUSTUP_HOME", "SDKMAN_DIR", "VIRTUAL_ENV", "VOLTA_HOME",
)  # fmt: skip
"""Variables that say where a toolchain lies; commands get them, and see what they name."""
_PARTS = {"CARGO_HOME": ("bin", "registry", "git", "config.toml"), "GOPATH": ("bin", "pkg")}
_PROGRAM_PARTS = (
    "lib", "lib64", "libexec", "share", "include", "toolchains", "tools", "shims", "versions",
    "envs", "pkgs", "pkgs2", "packages", "store", "install", "plugins", "extensions", "sdk",
    "node_modules",
)  # fmt: skip
"""Beside a `bin`: what programs are made of."""
_LONGEST_SETTINGS = 200_000
_MAY_BE_SECRET = re.compile(r"(?i)://[^/\s]*@|passw|token|secret|_auth|api_?key")


def private_folders(rules: CommandRules) -> list[str]:
    """The folders that are hidden, by their real place; not those that the project itself holds."""
    tops = [f"/{name}" for name in os.listdir(os.sep) if name not in _SYSTEM]
    found = {os.path.realpath(top) for top in (*tops, *_OF_PEOPLE, *own_homes())}
    open_to = [rules.project, *rules.writable]
    kept = [
        path
        for path in sorted(found)
        if os.path.isdir(path)
        and not _is_system(path)
        and not any(is_inside(path, each) for each in open_to)
    ]
    return [path for path in kept if not any(is_inside(path, o) for o in kept if o != path)]


def shown_paths(rules: CommandRules) -> list[str]:
    """What a command sees of private folders besides the project, by names that people use.

    A folder that holds a home is never among them.
    """
    homes = own_homes()
    wanted: list[str] = [os.path.join(home, place) for home in homes for place in _FOR_BUILDS]
    settings = (os.path.join(home, place) for home in homes for place in _TOOL_SETTINGS)
    wanted += [path for path in settings if _is_harmless(path)]
    wanted += [path for host in host_folders() for h in homes for path in host.user_folders(h)]
    wanted += [sys.prefix, sys.base_prefix, *_on_path(homes), *_by_variables()]
    wanted += [*git_folders(rules.project), *rules.show]
    real_homes = {os.path.realpath(home) for home in homes}
    found = dict.fromkeys(path for path in wanted if os.path.exists(path))
    return [
        path
        for path in found
        if not any(is_inside(home, os.path.realpath(path)) for home in real_homes)
    ]


def own_homes() -> list[str]:
    """The user's home, by the environment and by the list of accounts."""
    found = [paths.user_home()]
    try:
        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    except (KeyError, OSError):
        pass
    return [home for home in dict.fromkeys(found) if os.path.isdir(home)]


def _is_system(path: str) -> bool:
    """Whether a home, say that of a service, is a folder of the system's."""
    above, name = os.path.split(path)
    return path == os.sep or (above == os.sep and name in _SYSTEM)


def _on_path(homes: Iterable[str]) -> list[str]:
    """The folders of the PATH, and what a program in a `bin` finds beside it.

    A home on the PATH is a mistake, not a place for programs. In a hidden folder of a home (say
    `~/.pulumi/bin`) a program also keeps its tokens, so of that one only parts are shown.
    """
    found = []
    tops = [os.path.realpath(home) for home in homes]
    for part in os.environ.get("PATH", "").split(os.pathsep):
        if os.path.isabs(part):
            found.append(part)
            above, name = os.path.split(os.path.realpath(part))
            place, folder = os.path.split(above)
            if name != "bin" or (place in tops and folder == ".local"):
                continue
            parts = _PROGRAM_PARTS if place in tops and folder.startswith(".") else ("",)
            found += [os.path.join(above, part) if part else above for part in parts]
    return found


def _by_variables() -> list[str]:
    found = []
    for variable in TOOL_VARIABLES:
        if os.path.isabs(base := os.environ.get(variable, "")):
            parts = _PARTS.get(variable, ("",))
            found += [os.path.join(base, part) if part else base for part in parts]
    return found


def _is_harmless(path: str) -> bool:
    """Whether a file of settings can be read and no secret stands in it."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_LONGEST_SETTINGS + 1)
    except OSError:
        return False
    if len(text) > _LONGEST_SETTINGS or _MAY_BE_SECRET.search(text):
        return False
    return not secrets.find(text)
