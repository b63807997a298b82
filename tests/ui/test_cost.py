"""`tacit cost`: every figure was counted, and what has no price is said."""

from datetime import UTC, datetime, timedelta

from inside import answer, tacit

from tacit.agent.agent_events import Usage
from tacit.agent.budget import Limits, record_spending, reserve
from tacit.base.setting_sections import LearnSettings
from tacit.testing.sample_sessions import made
from tacit.traces.store import Store


def take(kind: str, cost: float | None, *, model: str = "openai:small", days: int = 0) -> None:
    usage = Usage(1000, 200, 500, cost, model)
    at = datetime.now(UTC) - timedelta(days=days)
    assert record_spending(kind, "s1", usage, seconds=1.5, now=at) == ""


def test_the_account_for_scripts() -> None:
    """Sums by day, kind and model, the budget, what is held and what is left of it."""
    take("review", 0.25)
    take("review", None, model="openai:local")
    take("improve", 0.5, days=3)
    take("curate", 1.0, days=40)
    reserve(LearnSettings(), Limits(money=0.5, seconds=60))
    found = answer("cost")
    assert set(found) == {
        "today", "budget", "days", "total", "by_day", "by_kind", "by_model", "chats",
    }  # fmt: skip
    assert (found["today"]["money"], found["today"]["unpriced"]) == (0.25, 1)
    assert (found["total"]["money"], found["total"]["requests"]) == (0.75, 3)
    assert set(found["by_kind"]) == {"review", "improve"}
    assert set(found["by_model"]) == {"openai:small", "openai:local"}
    assert len(found["by_day"]) == 2
    budget = found["budget"]
    assert (budget["money"], budget["held"], budget["refusal"]) == (2.0, 0.5, "")
    assert budget["money_left"] == 1.25
    assert budget["tokens_left"] is None
    assert answer("cost", "--days", "60")["total"]["money"] == 1.75


def test_the_account_for_people() -> None:
    """Today against its budget with a bar, a mark a day, shares by kind and by model."""
    take("review", 0.5)
    take("improve", 1.5, days=2)
    shown = tacit("cost").stdout
    assert "today       $0.50 of $2.00  █████░░░░░░░░░░░░░░░ 25%\n" in shown
    assert "30 days     $2.00" in shown
    assert "··█·▃\n" in shown
    assert "by kind     improve  ████████░░  75%  $1.50" in shown
    assert "            review   ██░░░░░░░░  25%  $0.50" in shown
    assert "50% of the input from the cache" in shown


def test_nothing_was_spent() -> None:
    """An empty account says so, without a division by nothing."""
    shown = tacit("cost").stdout
    assert "today       $0.00 of $2.00" in shown
    assert "nothing was asked of a model in the background" in shown


def test_a_model_without_a_price() -> None:
    """Its requests are counted by tokens, and nobody is told that they were free."""
    take("review", None)
    shown = tacit("cost").stdout
    assert "today       $0.00 of $2.00" in shown
    assert "1 request, 1 of them without a known price; 1.2k tokens" in shown
    assert "by kind     review  ██████████ 100%  1 request without a price" in shown


def test_a_budget_that_is_used_up(home) -> None:
    """It is said why nothing more happens today, and what to type."""
    take("review", 2.5)
    shown = tacit("cost").stdout
    assert "the budget of $2.00 a day is used up ($2.50 spent today)" in shown
    assert "tacit config set learn.daily_money 4" in shown
    assert "████████████████████ 125%" in shown


def test_tokens_as_a_budget() -> None:
    """A limit on tokens has a bar of its own; no limit at all is said."""
    take("review", None)
    shown = tacit("cost", TACIT_LEARN_DAILY_TOKENS="2400", TACIT_LEARN_DAILY_MONEY="0").stdout
    assert "1,200 of 2,400 tokens  ██████████░░░░░░░░░░ 50%" in shown
    shown = tacit("cost", TACIT_LEARN_DAILY_TOKENS="1000").stdout
    assert "the 1,000 tokens a day are used up" in shown
    assert "tacit config set learn.daily_tokens 2000" in shown
    shown = tacit("cost", TACIT_LEARN_DAILY_MONEY="0").stdout
    assert "no budget is set" in shown


def test_the_users_own_chats_are_apart() -> None:
    """A conversation with our agent is shown, and is no part of the background's sums."""
    store = Store.open()
    store.write(made(["hello"], host="tacit", session="c1"))
    store.close()
    found = answer("cost", "--days", "365")
    assert (found["chats"]["requests"], found["chats"]["unpriced"]) == (1, 1)
    assert found["total"]["requests"] == 0
    assert "1 conversation without a price in 1 conversation, not counted above" in (
        tacit("cost", "--days", "365").stdout
    )
