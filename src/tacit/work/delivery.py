"""Where the output of a run goes: always the inbox; a file, a command, a webhook, the desktop.

Each destination is served once for a run. One that acts outside (a command, a webhook, a
notification) is recorded before it begins: if a kill comes in between, it is not repeated, and
the run says so. A destination that fails does not fail the run; the reason stands beside its
name.
"""

import os
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from http.client import HTTPException
from typing import IO, Any

import msgspec

from tacit.base.atomic_files import write_atomic
from tacit.base.display import fit, one_line
from tacit.base.errors import TacitError, Usage
from tacit.base.paths import is_inside
from tacit.base.secrets import redact
from tacit.base.settings import load_settings
from tacit.learn.notices import Notice, announce
from tacit.skills.scopes import extra_folders
from tacit.work import schedule_runs
from tacit.work.schedule_runs import ScheduleRun
from tacit.work.schedule_store import Binding, Schedule

_DESTINATION = re.compile(r"(file|command|webhook):.+|desktop", re.S)
_COMMAND_SECONDS = 60.0
_WEBHOOK_SECONDS = 20.0
_BEGUN = "begun"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Failed(Exception):
    """A place that did not take the output, with the reason."""


def deliver(schedule: Schedule, row: ScheduleRun, hosts: tuple[str, ...]) -> ScheduleRun:
    """Bring the output of a run that succeeded to each of its places; the row as it is then."""
    if row.silent:
        return _record(row, "inbox", "silent")
    for place in schedule.binding.deliver:
        state = row.delivered.get(place, "")
        if state == _BEGUN:
            row = _record(row, place, "cut off while it was delivered; not repeated")
        elif not state:
            row = _record(row, place, _BEGUN)
            row = _record(row, place, _tried(place, schedule, row, hosts))
    if not row.delivered.get("inbox"):
        tell_user(row.id, headline(row))
        row = _record(row, "inbox", "delivered")
    return row


def tell_user(key: str, text: str) -> None:
    """Let the user know something about a schedule; the same key is told once."""
    announce(Notice(kind="scheduled", session=key, why=text))


def headline(row: ScheduleRun) -> str:
    """The result of a run, in one line."""
    see = f"read it: tacit schedule logs {row.id}"
    if row.state == "failed":
        return f"{row.schedule} failed: {fit(one_line(row.reason), 160)} · {see}"
    first = next((line for line in row.output.splitlines() if line.strip()), "(no output)")
    return f"{row.schedule}: {fit(one_line(first), 120)} · {see}"


def check_destinations(
    places: Sequence[str], hosts: tuple[str, ...], *, only_in: Binding | None = None
) -> tuple[str, ...]:
    """The places for output in their plain form. Raises `Usage` for one that cannot be used.

    What an agent asks for may lie `only_in` the project of a schedule, or on the desktop: commands
    and webhooks are the user's to set.
    """
    found = tuple(dict.fromkeys(place.strip() for place in places))
    for place in found:
        kind, _, target = place.partition(":")
        if _DESTINATION.fullmatch(place) is None:
            raise Usage(
                f"'{place}' is no place for output",
                "one of: file:PATH, command:SHELL COMMAND, webhook:URL, desktop",
            )
        if only_in is not None and kind not in ("desktop", "file"):
            raise Usage(
                f"'{place}' is for the user to set: tacit schedule edit NAME --deliver …",
                "here: desktop, or file:PATH in the project",
            )
        if only_in is not None and kind == "file":
            root = os.path.realpath(only_in.project) + os.sep
            path = file_path(target, "name", only_in, only_in.made)
            if not os.path.realpath(path).startswith(root):
                raise Usage(f"{place} is outside the project", "name a file in the project")
            if _is_obeyed(os.path.realpath(path), only_in.project):
                raise Usage(f"{place} is obeyed by other programs", "name another file")
        if kind == "webhook":
            check_webhook(target, hosts)
    return found


def check_webhook(url: str, hosts: tuple[str, ...]) -> str:
    """The address, if it may be sent to. Raises `Usage` with what to do."""
    parts = urllib.parse.urlsplit(url)
    host = (parts.hostname or "").lower()
    if parts.scheme not in ("https", "http") or not host or parts.username:
        raise Usage(f"'{url}' is no address for a webhook", "write it as https://host/path")
    if not any(fnmatchcase(host, allowed.lower()) for allowed in hosts):
        raise Usage(
            f"output may not be sent to {host}",
            f"allow it: tacit config set schedule.webhook_hosts {host}",
        )
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise Usage(f"{url} is not encrypted", "use https")
    return url


def _serve(place: str, schedule: Schedule, row: ScheduleRun, hosts: tuple[str, ...]) -> None:
    kind, _, target = place.partition(":")
    match kind:
        case "file":
            _file(target, schedule, row)
        case "command":
            _command(target, schedule, row)
        case "webhook":
            _webhook(check_webhook(target, hosts), row)
        case "desktop":
            from tacit.learn.announcements import notify

            if not notify(f"Tacit: {schedule.name}", fit(one_line(row.output), 200)):
                raise Failed("this machine shows no notifications")
        case _:
            raise Failed("no such place is known")


def file_path(target: str, name: str, binding: Binding, due: datetime) -> str:
    """The file that an output is written to; {name}, {date} and {time} stand for the run's own."""
    shown = due.astimezone(binding.place)
    path = (
        target.replace("{name}", name)
        .replace("{date}", f"{shown:%Y-%m-%d}")
        .replace("{time}", f"{shown:%H%M%S}")
    )
    return os.path.join(binding.project, os.path.expanduser(path))


def _is_obeyed(real: str, project: str) -> bool:
    """Whether git, agents or editors go by the file, so that no agent decides what stands in it."""
    from tacit.agent.off_limits import CommandRules, is_guarded, is_obeyed_path

    skills = extra_folders(load_settings(project).settings.skills.paths)
    rules = CommandRules(os.path.realpath(project), "", skills=skills)
    return is_guarded(real, rules) or is_obeyed_path(real, rules)


def _file(target: str, schedule: Schedule, row: ScheduleRun) -> None:
    path = file_path(target, schedule.name, schedule.binding, row.due)
    project = os.path.realpath(schedule.binding.project)
    meant = os.path.join(project, os.path.relpath(path, schedule.binding.project))
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    # The run may have put a link in the place of a folder since the file was named.
    astray = not is_inside(real, project) or _is_obeyed(real, project)
    if is_inside(meant, project) and real != meant and astray:
        raise Failed(f"{path} leads to {real} by a link; name that file if it is meant")
    write_atomic(path, row.output.encode() + b"\n", mode=0o666)


def _command(command: str, schedule: Schedule, row: ScheduleRun) -> None:
    try:
        done = subprocess.run(  # noqa: S602 - the user's own command, set by the user alone
            command,
            shell=True,
            input=row.output.encode(),
            cwd=schedule.binding.project,
            env={**os.environ, "TACIT_RUN": row.id, "TACIT_SCHEDULE": schedule.name},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"the command took longer than {_COMMAND_SECONDS:g} s") from None
    if done.returncode:
        last = done.stdout.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise Failed(f"the command ended with {done.returncode}: {fit(last, 120)}".rstrip(": "))


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirect would lead past the list of hosts."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any,
        newurl: str,
    ) -> None:  # fmt: skip
        return None


def _webhook(url: str, row: ScheduleRun) -> None:
    message = {
        "schedule": row.schedule,
        "run": row.id,
        "due": row.due,
        "text": redact(row.output).text,
    }
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        url,
        data=msgspec.json.encode(message),
        headers={"Content-Type": "application/json", "Idempotency-Key": row.id},
        method="POST",
    )
    opener = urllib.request.build_opener(_Stay)
    try:
        with opener.open(request, timeout=_WEBHOOK_SECONDS) as answer:
            answer.read(1000)
    except urllib.error.HTTPError as error:
        error.close()
        raise Failed(f"the webhook answered {error.code}") from None
    except (OSError, HTTPException) as error:
        raise Failed(f"the webhook could not be reached: {error}") from None


def _tried(place: str, schedule: Schedule, row: ScheduleRun, hosts: tuple[str, ...]) -> str:
    try:
        _serve(place, schedule, row, hosts)
    except Failed as failed:
        return f"failed: {failed}"
    except TacitError as error:
        return f"failed: {error.message}"
    except OSError as error:
        return f"failed: {error.strerror or error}"
    return "delivered"


def _record(row: ScheduleRun, place: str, state: str) -> ScheduleRun:
    delivered = {**row.delivered, place: state}
    with schedule_runs.write_runs() as connection:
        schedule_runs.update_run(connection, row.id, datetime.now(UTC), delivered=delivered)
    return msgspec.structs.replace(row, delivered=delivered)
