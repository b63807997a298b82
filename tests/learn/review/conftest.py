"""A session in the store, a scripted reviewer, and the job that brings them together."""

import pytest

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")
