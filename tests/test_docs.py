"""The documentation says what the program does."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_generated_pages_are_current() -> None:
    """docs/cli.md and docs/problems.md are what scripts/docs would write."""
    script = ROOT / "scripts" / "generate_docs.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_between_pages_lead_somewhere() -> None:
    """Every relative link in README and docs/ points to a file that exists."""
    broken = []
    for page in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http:", "https:", "mailto:")):
                if not (page.parent / target).exists():
                    broken.append(f"{page.name}: {target}")
    assert not broken


def test_every_page_is_in_the_menu() -> None:
    """mkdocs.yml lists every page of docs/."""
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert not [page for page in pages if page not in menu]
