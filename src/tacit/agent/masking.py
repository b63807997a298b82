"""What the agent may not read, though the user can: files of keys and credentials."""

import os
import re
from fnmatch import fnmatch

_NAMES = (
    ".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", ".pgpass", ".htpasswd", ".npmrc",
    ".pypirc", "credentials", "credentials.json", "credentials.toml", "credentials.y*ml",
    "secrets.json", "secrets.toml", "secrets.y*ml", "service-account*.json", "*.tfvars",
    "*.tfstate", ".git-credentials", "auth.json", "oauth_creds.json", "kubeconfig",
)  # fmt: skip
# Made to be shown.
_HARMLESS = re.compile(r"(?i)(^|[._-])(example|sample|template|dist|defaults?|test|pub)$|\.pub$")


def is_secret_file(name: str) -> bool:
    """Whether a file of this name is likely to hold secrets."""
    base = os.path.basename(name).lower()
    if _HARMLESS.search(base):
        return False
    return any(fnmatch(base, pattern) for pattern in _NAMES)


def is_secret_path(path: str, home: str) -> bool:
    """Whether `path` is such a file, or lies in a folder of secrets."""
    from tacit.agent.sandbox import SECRET_PLACES

    real = os.path.realpath(path)
    inside = (os.path.realpath(os.path.join(home, place)) for place in SECRET_PLACES)
    if any(real == place or real.startswith(place + os.sep) for place in inside):
        return True
    return is_secret_file(real) or is_secret_file(path)
