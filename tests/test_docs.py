"""The documents say what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from compiler.events import Body, Options, StageName
from compiler.text import LANGUAGES, catalogue
from server.settings import PREFIX, SETTINGS

ROOT = Path(__file__).parent.parent
PARAMETER = re.compile(r"\{(\w+)\}")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_setting_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(AOTSCOPE_\w+)` \| `(.*?)` \|", text("docs/operations.md"), re.M))
    assert rows == {PREFIX + row.name.upper(): str(row.default) or "(empty)" for row in SETTINGS}


def test_every_option_is_documented() -> None:
    table = text("docs/api.md").split("Options of a run")[1].split("Errors are")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == list(Options.model_fields)


def test_every_event_is_documented() -> None:
    table = text("docs/api.md").split("## Events")[1].split("## Artifacts")[0]
    named = {name for cell in re.findall(r"^\| (`.*?`) \|", table, re.M) for name in re.findall(r"`(\w+)`", cell)}
    kinds = {body.model_fields["type"].default for body in get_args(get_args(Body)[0])}
    assert named == kinds


def test_every_stage_is_in_the_readme() -> None:
    named = re.findall(r"^\| `(\w+)` \|", text("README.md").split("## The stages")[1].split("\n## ")[0], re.M)
    assert named == [stage.value for stage in StageName]


def test_files_named_in_the_documents_exist() -> None:
    missing = []
    for name in ("README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))):
        folder = (ROOT / name).parent
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text(name)):
            if not target.startswith("http") and not (folder / target).exists():
                missing.append((name, target))
        for target in re.findall(r"`((?:compiler|server|frontend|tests|docs|scripts)/[\w./-]+)`", text(name)):
            if not (ROOT / target).exists():
                missing.append((name, target))
    assert missing == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_has_its_words(language: str) -> None:
    """Each key that the code names exists in each language, and takes the parameters that the English one takes."""
    sources = [*(ROOT / "compiler").rglob("*.py"), *(ROOT / "server").rglob("*.py")]
    used = {key for file in sources for key in re.findall(r'message\(\s*"([^"]+)"', file.read_text(encoding="utf-8"))}
    words, english = catalogue(language), catalogue("en")
    assert used - set(words) == set()
    assert {key: set(PARAMETER.findall(words[key])) for key in english} == {
        key: set(PARAMETER.findall(english[key])) for key in english
    }


def test_no_sentence_is_left_over() -> None:
    """A key that no file names is a sentence that nobody can read."""
    files = [
        *(ROOT / "compiler").rglob("*.py"),
        *(ROOT / "server").rglob("*"),
        *(ROOT / "frontend" / "src").rglob("*.ts*"),
    ]
    everything = "\n".join(
        file.read_text(encoding="utf-8") for file in files if file.suffix in (".py", ".ts", ".tsx", ".html", ".j2")
    )
    assert [key for key in catalogue("en") if f'"{key}"' not in everything] == []


def test_the_snippets_of_the_documents_run() -> None:
    """In a process of their own: they import torch."""
    for snippet in re.findall(r"```python\n(.*?)```", text("docs/snippets.md"), re.S):
        program = "import torch; torch.compile = lambda model, **_: model\n" + snippet
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=120)
