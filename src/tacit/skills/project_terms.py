"""What a project is made of, in the words that skills use: languages, tools, libraries.

Read off the names of its files, at the top and one folder below, and off the files in which it
lists what it needs; nothing is run and nothing is remembered. Coarse on purpose: the words decide
which skills a first prompt shows, and should change as seldom as the project's nature does.
`tacit catalogue` waits for this module, so it imports little.
"""

import os

from tacit.base import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ENDINGS = {
    "c": "c", "cc": "c++ cpp", "cpp": "c++ cpp", "cs": "c# csharp dotnet", "css": "css",
    "dart": "dart flutter", "ex": "elixir", "exs": "elixir", "go": "go golang", "hs": "haskell",
    "html": "html", "ipynb": "jupyter notebook", "java": "java", "jl": "julia", "js": "javascript",
    "jsx": "javascript react", "kt": "kotlin", "lua": "lua", "php": "php", "pl": "perl",
    "proto": "protobuf grpc", "ps1": "powershell", "py": "python", "r": "r", "rb": "ruby",
    "rs": "rust", "scala": "scala", "sh": "shell bash", "sol": "solidity", "sql": "sql",
    "svelte": "svelte", "swift": "swift", "tex": "latex", "tf": "terraform", "ts": "typescript",
    "tsx": "typescript react", "vue": "vue", "zig": "zig",
}  # fmt: skip
_NAMES = {
    "Cargo.toml": "rust cargo", "Chart.yaml": "helm kubernetes", "Dockerfile": "docker",
    "Gemfile": "ruby bundler", "Jenkinsfile": "jenkins", "Makefile": "makefile",
    "Package.swift": "swift", "alembic.ini": "alembic sql", "angular.json": "angular",
    "ansible.cfg": "ansible", "astro.config.mjs": "astro", "build.gradle": "gradle java",
    "build.gradle.kts": "gradle kotlin", "bun.lockb": "bun", "composer.json": "php composer",
    "deno.json": "deno typescript", "docker-compose.yaml": "docker", "docker-compose.yml": "docker",
    "firebase.json": "firebase", "go.mod": "go golang", "kustomization.yaml": "kubernetes",
    "manage.py": "django", "mix.exs": "elixir phoenix", "mkdocs.yml": "mkdocs",
    "netlify.toml": "netlify", "next.config.js": "nextjs react", "next.config.mjs": "nextjs react",
    "next.config.ts": "nextjs react", "nx.json": "nx monorepo", "package.json": "npm node",
    "playwright.config.ts": "playwright", "pnpm-lock.yaml": "pnpm", "poetry.lock": "poetry",
    "pom.xml": "maven java", "pubspec.yaml": "flutter dart", "pyproject.toml": "python",
    "pytest.ini": "pytest", "requirements.txt": "python pip", "serverless.yml": "serverless lambda",
    "setup.py": "python", "skaffold.yaml": "kubernetes", "tailwind.config.js": "tailwind css",
    "tailwind.config.ts": "tailwind css", "turbo.json": "turborepo monorepo", "uv.lock": "uv",
    "vercel.json": "vercel", "vite.config.js": "vite", "vite.config.ts": "vite",
    "wrangler.toml": "cloudflare workers", "yarn.lock": "yarn", ".gitlab-ci.yml": "gitlab",
    ".pre-commit-config.yaml": "pre-commit", "schema.prisma": "prisma",
}  # fmt: skip
_FOLDERS = {
    ".github/workflows": "github actions", ".circleci": "circleci", "prisma": "prisma",
    ".storybook": "storybook", "k8s": "kubernetes", "helm": "helm", "terraform": "terraform",
    "ansible": "ansible", "cypress": "cypress", ".devcontainer": "devcontainer",
}  # fmt: skip
_PASSED_OVER = frozenset({"node_modules", "venv", "vendor", "target", "dist", "build", "out"})
_FEW = 3
"""So many files of an ending make it one of the project's."""
_MOST_FOLDERS, _MOST_FILES, _MOST_TERMS = 40, 4000, 40
_MOST_BYTES = 200_000


def project_terms(cwd: str) -> tuple[str, ...]:
    """The words for the project of `cwd`, languages and tools first; none in no project."""
    top = paths.project_root(cwd)
    if paths.is_home(top):
        return ()
    files, below = _look(top)
    found: dict[str, None] = {}
    for name in sorted(set(files)):
        found |= dict.fromkeys(_NAMES.get(name, "").split())
    endings: dict[str, int] = {}
    for name in files:
        ending = name.rpartition(".")[2].lower() if "." in name else ""
        endings[ending] = endings.get(ending, 0) + 1
    for ending in sorted(_ENDINGS):
        if endings.get(ending, 0) >= _FEW:
            found |= dict.fromkeys(_ENDINGS[ending].split())
    for folder, words in _FOLDERS.items():
        if folder in below or ("/" in folder and os.path.isdir(f"{top}/{folder}")):
            found |= dict.fromkeys(words.split())
    for needed in sorted(_needed(top)):
        found.setdefault(needed)
    return tuple(found)[:_MOST_TERMS]


def _look(top: str) -> tuple[list[str], set[str]]:
    """The names of the files at the top and one folder below, and of the folders at the top."""
    files: list[str] = []
    folders: list[str] = []
    try:
        entries = sorted(os.scandir(top), key=lambda entry: entry.name)
        for entry in entries:
            (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
        own = [f for f in folders if not f.startswith(".") and f not in _PASSED_OVER]
        for folder in own[:_MOST_FOLDERS]:
            files += sorted(os.listdir(f"{top}/{folder}"))
            if len(files) > _MOST_FILES:
                break
    except OSError:
        pass
    return files[:_MOST_FILES], set(folders)


def _needed(top: str) -> set[str]:
    """The libraries that the project says it needs, by their names."""
    found: set[str] = set()
    for file, read in _LISTS.items():
        try:
            with open(f"{top}/{file}", encoding="utf-8", errors="replace") as opened:
                found |= read(opened.read(_MOST_BYTES))
        except OSError:
            continue
    return {name.lower() for name in found if len(name) > 2}


def _of_package_json(text: str) -> set[str]:
    """Of `@prisma/client` what comes first tells more."""
    import json

    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return set()
    names = _keys(said, "dependencies") | _keys(said, "devDependencies")
    return {name.lstrip("@").partition("/")[0] for name in names} - {"types"}


def _of_requirements(text: str) -> set[str]:
    return {_name(line.strip()) for line in text.splitlines()}


def _of_pyproject(text: str) -> set[str]:
    said = _toml(text)
    project, tool = (_part(said, name) for name in ("project", "tool"))
    lists = _values(project, "optional-dependencies") + _values(said, "dependency-groups")
    lists += [project["dependencies"]] if isinstance(project.get("dependencies"), list) else []
    named = {_name(line) for listed in lists for line in listed if isinstance(line, str)}
    return (named | _keys(_part(tool, "poetry"), "dependencies")) - {"python"}


def _of_cargo(text: str) -> set[str]:
    said = _toml(text)
    return _keys(said, "dependencies") | _keys(said, "dev-dependencies")


def _toml(text: str) -> "dict[str, Any]":
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def _part(said: "Any", name: str) -> "dict[str, Any]":
    """A table in what a file says; files of strangers say anything."""
    found = said.get(name) if isinstance(said, dict) else None
    return found if isinstance(found, dict) else {}


def _keys(said: "Any", part: str) -> set[str]:
    return set(_part(said, part))


def _values(said: "Any", part: str) -> "list[Any]":
    return [value for value in _part(said, part).values() if isinstance(value, list)]


def _name(requirement: str) -> str:
    """The name that a requirement of Python begins with; nothing where it begins with none."""
    end = (n for n, c in enumerate(requirement) if not (c.isalnum() or c in "-_."))
    name = requirement[: next(end, len(requirement))]
    return name if name[:1].isalpha() else ""


def _of_go_mod(text: str) -> set[str]:
    lines = (line.removeprefix("require").split() for line in text.splitlines())
    return {words[0].rpartition("/")[2] for words in lines if len(words) > 1 and "." in words[0]}


_LISTS = {
    "package.json": _of_package_json,
    "requirements.txt": _of_requirements,
    "pyproject.toml": _of_pyproject,
    "Cargo.toml": _of_cargo,
    "go.mod": _of_go_mod,
}
"""The files in which projects list what they need, and how each is read."""
