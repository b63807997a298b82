"""What a job is called."""

from hypothesis import given
from hypothesis import strategies as st

from tacit.base.job import job_id


@given(key=st.text(), other=st.text())
def test_ids_are_names_of_files_and_differ(key: str, other: str) -> None:
    """Whatever a session is called, the job's id is short, and another key has another id."""
    made = job_id("review", key)
    assert made.isascii()
    assert len(made) == 19
    assert (job_id("review", other) == made) == (other == key)
    assert job_id("improve", key) != made
