"""Names of learned skills: for a class of work, not for a ticket, an error, a deed or a day."""

import pytest

from tacit.learn.review.names import unfit_name

BAD = [
    "pr-1234", "issue-77-build", "ops-4711", "jira-12", "cve-2026-1234", "fix-the-build",
    "debug-login", "keyerror-version", "e0554-stable", "build-2026-11-15",
    "todays-task-monday", "a1b2c3d-revert", "Package-Builds", "two--hyphens", "-x", "", "x" * 65,
    "work_of_mine", "session-3", "release-20261115",
]  # fmt: skip
GOOD = [
    "package-builds", "database-migrations", "release-notes", "error-handling", "python3-venvs",
    "k8s-rollouts", "debugging-restarting-pods", "oauth2-login", "s3-uploads", "code-review",
    "http2-tuning", "fixtures-for-tests", "e2e-tests", "utf-8-files", "i18n",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_names_of_today(name: str) -> None:
    """Each of these is refused, with a reason."""
    assert unfit_name(name)


@pytest.mark.parametrize("name", GOOD)
def test_names_of_classes(name: str) -> None:
    """Each of these may be."""
    assert unfit_name(name) == ""
