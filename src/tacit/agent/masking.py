"""What the agent may not read, though the user can: files of keys and credentials."""

import os
import re
from fnmatch import fnmatch
from functools import lru_cache

# Below a home: what neither a tool nor a command has any business reading.
SECRET_PLACES = (
    ".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".kube",
    ".docker", ".netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".git-credentials",
    ".config/git/credentials", ".password-store", ".local/share/keyrings", ".mozilla",
    ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".thunderbird",
    ".cargo/credentials", ".cargo/credentials.toml", ".terraform.d",
    ".config/rclone", ".vault-token",
    ".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json",
    ".qwen/oauth_creds.json", ".local/share/opencode/auth.json", ".copilot/config.json",
    ".hermes/.env", ".pi/agent/auth.json", ".config/github-copilot", "Library/Keychains",
    "Library/Cookies", "Library/Application Support/Google", ".bash_history", ".zsh_history",
    ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
)  # fmt: skip
_NAMES = (
    ".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore",
    "*.kdbx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".pgpass",
    ".htpasswd", ".npmrc", ".pypirc", "credentials", "credentials.json", "credentials.toml",
    "credentials.y*ml", "secrets.json", "secrets.toml", "secrets.y*ml", "service-account*.json",
    "*.tfvars", "*.tfstate", ".git-credentials", "auth.json", "oauth_creds.json", "kubeconfig",
    ".vault-token", "*.ppk", "*.asc.key",
)  # fmt: skip
# Made to be shown.
_HARMLESS = re.compile(
    r"(?i)(^|[._-])(example|sample|template|tmpl|dist|defaults?|test|ci)$|\.pub$"
    r"|\.(example|sample|template)\.[a-z]+$"
)


def is_secret_file(name: str) -> bool:
    """Whether a file of this name is likely to hold secrets."""
    base = os.path.basename(name).lower()
    if _HARMLESS.search(base):
        return False
    return any(fnmatch(base, pattern) for pattern in _NAMES)


def is_secret_path(path: str, home: str) -> bool:
    """Whether `path` is such a file, or lies in a folder of secrets; links are followed."""
    real = os.path.realpath(path)
    if any(real == place or real.startswith(place + os.sep) for place in _places(home)):
        return True
    return is_secret_file(real) or is_secret_file(path)


@lru_cache(maxsize=16)
def _places(home: str) -> tuple[str, ...]:
    return tuple(os.path.realpath(os.path.join(home, place)) for place in SECRET_PLACES)
