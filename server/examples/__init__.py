"""The gallery: snippets in this folder and in `questions/`, and recordings of their runs in `recorded/`.

A snippet's docstring is its title (first line) and its description (the rest); a last line that begins with # is the place at
which the page opens it. Of a question, the title is what was asked, and the description the answer.
`zh.json` says both in Chinese, by the snippet's name.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Literal

from compiler.text import Frozen
from compiler.recording import Recording
from server.recording import load
from server.store.artifacts import Artifacts
from server.store.runs import Runs

FOLDER = Path(__file__).parent


class Said(Frozen):
    """An example's title and description in one language."""

    title: str
    description: str


class Example(Frozen):
    """`source` is without the docstring; `place` the fragment of the address (with its #) that shows what it is about, if it has
    one; `run` the id of its recorded run, if there is one; `zh` its title and description in Chinese, if it is of the gallery."""

    name: str
    group: Literal["examples", "questions"] = "examples"
    title: str
    description: str
    source: str
    place: str = ""
    run: str | None = None
    zh: Said | None = None


def parse(name: str, text: str, group: Literal["examples", "questions"] = "examples") -> Example:
    """An example from the text of its file. Raises ValueError when it has no docstring."""
    module = ast.parse(text)
    docstring = ast.get_docstring(module)
    if docstring is None:
        raise ValueError(f"the example {name} has no docstring")
    title, _, rest = docstring.partition("\n")
    description, mark, place = rest.rpartition("\n#")
    if not mark:
        description = rest
    end = module.body[0].end_lineno or 1
    source = "".join(text.splitlines(keepends=True)[end:]).lstrip("\n")
    return Example(
        name=name,
        group=group,
        title=title.strip(),
        description=" ".join(description.split()),
        source=source,
        place=f"#{place.strip()}" if mark else "",
    )


@cache
def examples(folder: Path = FOLDER) -> tuple[Example, ...]:
    """All of them, by name, the questions last."""
    chinese = json.loads((folder / "zh.json").read_text(encoding="utf-8"))
    found = []
    for file in example_files(folder):
        example = parse(file.stem, file.read_text(encoding="utf-8"), "examples" if file.parent == folder else "questions")
        found.append(example.model_copy(update={"zh": Said.model_validate(chinese[file.stem])}))
    return tuple(found)


def example_files(folder: Path = FOLDER) -> list[Path]:
    own = sorted(file for file in folder.glob("*.py") if file.name != "__init__.py")
    return own + sorted(folder.glob("questions/*.py"))


def recorded_id(name: str) -> str:
    """The id under which an example's recording is served."""
    return f"example-{name.replace('_', '-')}"


def read_recording(file: Path) -> Recording:
    return Recording.model_validate_json(gzip.decompress(file.read_bytes()))


def import_recordings(runs: Runs, artifacts: Artifacts, folder: Path = FOLDER / "recorded") -> list[str]:
    """Put every recording into the store under its example's id, where it is absent or another one. Returns the ids put."""
    done = []
    for file in sorted(folder.glob("*.json.gz")):
        run = recorded_id(file.name.removesuffix(".json.gz"))
        origin = f"recording {hashlib.sha256(file.read_bytes()).hexdigest()}"
        known = runs.get(run)
        if known is None or known.executor != origin:
            load(runs, artifacts, read_recording(file), run, origin)
            done.append(run)
    return done
