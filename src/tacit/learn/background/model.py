"""Which model works in the background, which ports lead to it, which variables it needs."""

import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from tacit.agent import models
from tacit.agent.models import KEYS, Choice
from tacit.base import secrets
from tacit.base.errors import BadConfig
from tacit.base.sections import AgentSettings

# Variables of a provider do not always begin with its name.
_PREFIXES = {
    "google": ("GOOGLE_", "GEMINI_"),
    "google-gla": ("GOOGLE_", "GEMINI_"),
    "google-vertex": ("GOOGLE_", "GCLOUD_", "CLOUDSDK_"),
    "openai-responses": ("OPENAI_",),
    "openai-chat": ("OPENAI_",),
    "azure": ("AZURE_", "OPENAI_"),
    "bedrock": ("AWS_",),
    "cohere": ("CO_", "COHERE_"),
    "huggingface": ("HF_",),
    "grok": ("GROK_", "XAI_"),
    "xai": ("XAI_",),
}
_SECRET = re.compile(
    r"(?i)(key|token|secret|passw(or)?d|passphrase|pwd|credential|auth|cookie|session|private"
    r"|signing|salt|dsn|pat|_pass|webhook|cert_data)(_|$|s$|s_|file|id)|_sock$|database_url|_uri$"
)
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def choose(settings: AgentSettings) -> Choice:
    """The background's model. Raises `BadConfig` with what to do when there is none.

    What is set for it; else the small sister of the user's model; else what a key or a local
    server offers. A server of the user's own has no small sister that is known.
    """
    if settings.background:
        return _named(settings.background, settings.base_url)
    if settings.model:
        named = _named(settings.model, settings.base_url)
        return named if settings.base_url else Choice(_small(named.name), "", named.why)
    found = models.find("", settings.base_url, background=True)
    if found is None:
        raise BadConfig(
            "no model for work in the background: no key is set, and no local server answers",
            "set one up: tacit setup",
        )
    return found


def ports(choice: Choice, variables: Mapping[str, str]) -> tuple[int, ...]:
    """The TCP ports through which the model is reached: its server's, or a proxy's."""
    if choice.base_url:
        addresses = [choice.base_url]
    else:
        mine = _prefixes(choice)
        named = (name for name in variables if name.startswith(mine))
        addresses = ["https://provider"]
        addresses += [variables[n] for n in named if n.endswith(("_URL", "_ENDPOINT", "_HOST"))]
    addresses += [value for name, value in variables.items() if name.lower() in _PROXIES]
    found = {port for address in addresses if (port := _port(address))}
    return tuple(sorted(found))


def environment(choice: Choice, variables: Mapping[str, str]) -> dict[str, str]:
    """`variables` without the secrets, but for those by which the model is reached."""
    mine = _prefixes(choice)
    return {
        name: value
        for name, value in variables.items()
        if name.startswith(mine) or name.lower() in _PROXIES or not _looks_secret(name, value)
    }


def _named(name: str, base_url: str) -> Choice:
    return Choice(name if ":" in name else f"openai:{name}", base_url, "your settings")


def _small(name: str) -> str:
    """The provider's small model, where one is known."""
    provider = name.partition(":")[0].removesuffix("-responses").removesuffix("-gla")
    for _, work, small in KEYS:
        if work.partition(":")[0] == provider:
            return small
    return name


def _prefixes(choice: Choice) -> tuple[str, ...]:
    provider = choice.name.partition(":")[0]
    return _PREFIXES.get(provider) or (provider.upper().replace("-", "_") + "_",)


def _looks_secret(name: str, value: str) -> bool:
    if _SECRET.search(name):
        return True
    address = urlsplit(value) if "://" in value and "@" in value else None
    return bool(secrets.find(f"{name}={value}")) or (address is not None and "@" in address.netloc)


def _port(address: str) -> int | None:
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        return parts.port or {"http": 80, "https": 443}.get(parts.scheme, 1080)
    except ValueError:
        return None


def from_here(choice: Choice) -> dict[str, str]:
    """The variables of this process, fit for the child."""
    return environment(choice, os.environ)
