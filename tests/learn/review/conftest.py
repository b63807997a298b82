"""A session in the store, a scripted reviewer, and the job that brings them together."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")

from tacit.agent import retry
from tacit.base import trust
from tacit.base.config_file import set_values
from tacit.base.job import Done, Job
from tacit.learn.review.job import run
from tacit.testing import ModelServer
from tacit.testing.sessions import made, ran
from tacit.traces.store import Store
from tacit.traces.trace import Trace
