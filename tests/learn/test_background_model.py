"""Which model works in the background, and what its process gets to know."""

import pytest

from tacit.agent.models import ModelChoice, for_learning
from tacit.base.errors import BadConfig
from tacit.base.setting_sections import AgentSettings, LearnSettings, Settings
from tacit.learn.background import child_process


@pytest.mark.parametrize(
    ("learn", "agent", "wanted"),
    [
        ("openai:tiny", AgentSettings("anthropic:big"), "openai:tiny"),
        ("tiny", AgentSettings(), "openai:tiny"),
        ("", AgentSettings("anthropic:claude-opus-4-5"), "anthropic:claude-haiku-4-5"),
        ("", AgentSettings("google-gla:gemini-3"), "google:gemini-2.5-flash"),
        ("", AgentSettings("cohere:command"), "cohere:command"),
        ("", AgentSettings("openai:mine", base_url="http://127.0.0.1:1/v1"), "openai:mine"),
    ],
)
def test_the_set_one_then_the_small_sister(learn: str, agent: AgentSettings, wanted: str) -> None:
    """What is set wins; a provider's model gives its small one; a server of one's own its own."""
    choice = for_learning(Settings(agent=agent, learn=LearnSettings(model=learn)))
    assert (choice.name, choice.base_url) == (wanted, agent.base_url)


def test_a_key_alone_is_not_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing set by a person, no key that is there and no server is used."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "x")
    with pytest.raises(BadConfig, match="no model was chosen for learning") as raised:
        for_learning(Settings())
    assert "tacit setup" in raised.value.hint


def test_none_is_obeyed() -> None:
    """`learn.model = "none"` asks no model, also where one is set for the chat."""
    settings = Settings(agent=AgentSettings("openai:big"), learn=LearnSettings(model="none"))
    with pytest.raises(BadConfig, match="learning asks no model"):
        for_learning(settings)


def test_an_address_without_a_model_is_said() -> None:
    """A server that offers nothing is named."""
    with pytest.raises(BadConfig, match="none is offered at http"):
        for_learning(Settings(agent=AgentSettings(base_url="http://127.0.0.1:9/v1")))


@pytest.mark.parametrize(
    ("choice", "variables", "wanted"),
    [
        (ModelChoice("openai:x", "http://127.0.0.1:11434/v1"), {}, (11434,)),
        (ModelChoice("openai:x", "http://host/v1"), {"OPENAI_BASE_URL": "http://h:7"}, (80,)),
        (ModelChoice("openai:x", "https://host/v1"), {"HTTPS_PROXY": "http://p:3128"}, (443, 3128)),
        (ModelChoice("anthropic:x"), {}, (443,)),
        (ModelChoice("openai:x"), {"OPENAI_BASE_URL": "http://h:7/v1"}, (7, 443)),
        (ModelChoice("openai:x"), {"ANTHROPIC_BASE_URL": "http://h:7/v1"}, (443,)),
        (ModelChoice("ollama:x"), {"OLLAMA_HOST": "localhost:11434"}, (443, 11434)),
        (
            ModelChoice("openai:x"),
            {"OPENAI_BASE_URL": "http://h:no", "all_proxy": "socks5://s"},
            (443, 1080),
        ),
    ],
)
def test_ports(choice: ModelChoice, variables: dict[str, str], wanted: tuple[int, ...]) -> None:
    """The ports are those of the address, of the provider's own variables and of a proxy."""
    assert child_process.model_ports(choice, variables) == wanted


def test_only_the_model_s_secrets_are_passed_on() -> None:
    """The provider's variables and harmless ones stay; what looks like a secret does not."""
    given = {
        "PATH": "/bin", "HOME": "/home/x", "LANG": "C", "TACIT_HOME": "/t", "PYTHONPATH": "/p",
        "ANTHROPIC_API_KEY": "k", "ANTHROPIC_AUTH_TOKEN": "k", "HTTPS_PROXY": "http://u:p@proxy",
        "OPENAI_API_KEY": "k", "GH_TOKEN": "k", "NPM_TOKEN": "k", "DB_PASSWORD": "k",
        "TACIT_DATABASE_URL": "postgres://x", "SSH_AUTH_SOCK": "/s", "MAIL": "smtp://u:p@host",
        "NOTE": "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5",
    }  # fmt: skip
    kept = child_process.without_secrets(ModelChoice("anthropic:x"), given)
    assert set(kept) == {
        "PATH", "HOME", "LANG", "TACIT_HOME", "PYTHONPATH", "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN", "HTTPS_PROXY",
    }  # fmt: skip
