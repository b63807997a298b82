"""The rules of curation, against a simple model of them."""

from hypothesis import given
from hypothesis import strategies as st

from tacit.base.setting_sections import CurateSettings
from tacit.learn.curate.curation_records import Age, AgeRules, SkillActivity, next_age

RULES = AgeRules()
DAYS = 120


def expected(idle: float) -> str:
    """What the rules say in one line: so many days without use or edit."""
    return "archived" if idle >= 90 else "stale" if idle >= 30 else "active"


@st.composite
def lives(draw) -> tuple[int, list[int], list[int]]:
    """The day a skill was made, the days on which it was used, and those of the looks.

    Looks come at least every 14 days, as the longest gap that counts.
    """
    born = draw(st.integers(0, DAYS - 1))
    uses = sorted(draw(st.sets(st.integers(born, DAYS), max_size=6)))
    gaps = draw(st.lists(st.integers(1, 14), min_size=DAYS // 7, max_size=DAYS))
    looks, day = [], 0
    for gap in [*gaps, *[7] * DAYS]:
        day += gap
        if day > DAYS:
            break
        looks.append(day)
    return born, uses, looks


@given(lives())
def test_a_skill_stands_as_its_last_use_says(life) -> None:
    """At every look: active, stale or archived by the days since it was last used or made."""
    born, uses, looks = life
    known: Age | None = None
    before, in_archive = -1, False
    for day in looks:
        if day < born:
            before = day
            continue
        done = [use for use in uses if use <= day]
        fresh = [use for use in done if use > before]
        if in_archive and fresh:  # called by its name, it came back
            in_archive = False
        last = max([born, *done])
        seen = SkillActivity(
            archived=in_archive, moved=known is not None and bool(fresh), days=day - last
        )
        known = next_age(RULES, known, seen, day - max(before, 0) if before >= 0 else day)
        before = day
        if in_archive:
            assert known.state == "archived"
            continue
        if known.state == "archived":
            in_archive = True
        # One that came back begins anew at that look, which is at most a gap late.
        assert known.state == expected(day - last) or (fresh and known == Age())


@given(
    st.lists(
        st.tuples(
            st.floats(-1e5, 1e5, allow_nan=False),
            st.booleans(),
            st.floats(-1e5, 1e5, allow_nan=False),
        ),
        max_size=30,
    )
)
def test_no_clock_puts_anything_away_early(looks) -> None:
    """Whatever the clock says: nothing is archived before 90 days of at most 14 a look passed."""
    known: Age | None = None
    longest = 0.0
    for passed, moved, days in looks:
        was = known
        known = next_age(
            RULES, known, SkillActivity(moved=moved and known is not None, days=days), passed
        )
        fresh = was is None or moved
        longest = (30.0 if was is None else 14.0) if fresh else longest + 14.0
        assert known.idle >= 0
        if known.state == "archived":
            assert was is not None
            assert was.state == "stale"
            assert longest >= 90
            known = None


def test_a_jump_of_years_ages_nothing_by_more_than_a_gap() -> None:
    """After 20 years at once a skill is 14 days older; put back, it is not younger."""
    after = next_age(RULES, Age("active", 10), SkillActivity(days=7300), 7300)
    assert after == Age("active", 24)
    assert next_age(RULES, after, SkillActivity(days=-7300), -7300) == after


def test_what_is_kept_begins_anew_when_it_is_let_go() -> None:
    """A pinned skill has no age; unpinned after a year, it has its 30 days."""
    pinned = next_age(RULES, Age("stale", 80), SkillActivity(kept="pinned", days=400), 7)
    assert pinned == Age()
    assert next_age(RULES, pinned, SkillActivity(days=400), 7) == Age("active", 7)


def test_restored_is_active_again() -> None:
    """What was brought back from the archive begins anew, whatever its age was."""
    assert next_age(RULES, Age("archived", 95), SkillActivity(days=95), 7) == Age()


def test_met_for_the_first_time_it_is_stale_at_most() -> None:
    """A library that Tacit meets for the first time loses nothing at the first look."""
    assert next_age(RULES, None, SkillActivity(days=4000), 0) == Age("stale", 30)
    assert next_age(RULES, None, SkillActivity(days=3), 0) == Age("active", 3)
    assert next_age(RULES, None, SkillActivity(days=-50), 0) == Age("active", 0)


def test_thresholds_are_settings() -> None:
    """The days are the user's to set; archiving never comes before going stale."""
    rules = AgeRules.of(CurateSettings(stale_days=10, archive_days=5, every_days=1))
    assert rules == AgeRules(10, 10, 2)
    assert next_age(rules, Age("active", 9), SkillActivity(days=11), 2).state == "stale"
