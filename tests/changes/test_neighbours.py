"""Near-duplicates: the same in the same words, not the same subject."""

from hypothesis import given
from hypothesis import strategies as st

from tacit.changes.neighbours import contained, nearest_duplicate, resemblance, shingles, sketch
from tacit.skills.skill import Skill

BODY = (
    "Check that the changelog names every change since the last tag. Set the version. Commit, tag "
    "and push. Wait for the build, then publish the release notes and tell the channel."
)


def skill(name: str, description: str, body: str) -> Skill:
    return Skill(name=name, description=description, body=body)


RELEASE = skill("release", "Release a version of the library to the registry.", BODY)


def test_repeated_text_is_found() -> None:
    """A new name and one more sentence do not make a new skill."""
    new = skill("ship", "Publish a package.", BODY + " Thank the contributors.")
    found = nearest_duplicate(new, [skill("bake", "Bake bread.", "Mix flour and water."), RELEASE])
    assert found is not None
    assert (found.skill.name, found.measure) == ("release", "text")
    assert found.share > 0.8


def test_short_part_of_a_long_skill_is_found() -> None:
    """A new skill that stands whole inside an old one repeats it."""
    assert nearest_duplicate(
        skill("tag", "Tag.", "Set the version. Commit, tag and push."), [RELEASE]
    )


def test_same_description_is_found() -> None:
    """Nearly the same description with another body is the same skill again."""
    body = "Ask the maintainers by mail. They keep a list on paper and will do the rest by hand."
    new = skill("release-2", "Release a version of the library to the registry!", body)
    found = nearest_duplicate(new, [RELEASE])
    assert found is not None
    assert found.measure == "description"


def test_same_subject_is_not_a_duplicate() -> None:
    """Another text on the same subject, or one pattern for two products, may be made."""
    other = skill(
        "hotfix", "Release an urgent fix.", "Branch from the tag, cherry-pick, test, tag."
    )
    assert nearest_duplicate(other, [RELEASE]) is None
    one = skill("vercel-setup", "Configure Vercel across staging and production environments.", "A")
    two = skill("fly-setup", "Configure Fly across staging and production environments.", "B")
    assert nearest_duplicate(one, [two]) is None


@given(st.text(max_size=300))
def test_a_text_resembles_itself(text: str) -> None:
    """Any text is contained in itself and in a longer one, and its sketch is the same."""
    runs = shingles(text)
    assert contained(runs, runs) in (0.0, 1.0)
    assert resemblance(sketch(text), sketch(text)) == (1.0 if runs else 0.0)
    assert len(sketch(text)) <= 64
