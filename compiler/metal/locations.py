"""From each line of a kernel's lower levels to the line of its Triton source, by the locations that the compilers leave there.

Each function takes the level's text and the kernel's file name, and returns {line of the text: line of the Triton source}, both
counted from 1, for the lines that do something. What was inlined from a library counts as the line of the kernel that called it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_ALIAS = re.compile(r"^#loc(\d*) = loc\((.*)\)$")
_REFERENCE = re.compile(r"#loc(\d*)\b")
_LAST_LOC = re.compile(r"loc\(((?:[^()]|\([^()]*\))*)\)\s*$")
_FILE = re.compile(r'^"(?P<file>[^"]*)":(?P<line>\d+):\d+$')
_NAMED = re.compile(r'^"[^"]*"\((?P<inner>.*)\)$')
_CALLSITE = re.compile(r"^callsite\((?P<callee>.*) at (?P<caller>.*)\)$")
_FUSED = re.compile(r"^fused(?:<.*>)?\[(?P<inner>.*)\]$")


def of_mlir(text: str, file: str) -> dict[int, int]:
    """TTIR and TTGIR: each operation ends in `loc(…)`, mostly an alias that the end of the text spells out. An operation that was
    made of several (`fused`) counts as the last of them, which uses the others."""
    aliases = {found[1]: found[2] for line in text.splitlines() if (found := _ALIAS.match(line))}
    memo: dict[str, int | None] = {}

    def resolve(location: str, depth: int = 0) -> int | None:
        location = location.strip()
        if depth > len(aliases) + 8:  # a text that refers to itself
            return None
        if reference := re.fullmatch(_REFERENCE, location):
            name = reference[1]
            if name not in memo:
                memo[name] = None
                memo[name] = resolve(aliases.get(name, ""), depth + 1)
            return memo[name]
        if at := _FILE.match(location):
            return int(at["line"]) if _base(at["file"]) == file and int(at["line"]) else None
        if call := _CALLSITE.match(location):
            return resolve(call["caller"], depth + 1) or resolve(call["callee"], depth + 1)
        if several := _FUSED.match(location):
            found = [resolve(part, depth + 1) for part in several["inner"].split(", ")]
            return max((line for line in found if line), default=None)
        if named := _NAMED.match(location):
            return resolve(named["inner"], depth + 1)
        return None

    lines: dict[int, int] = {}
    for number, line in _mlir_statements(text):
        at = _LAST_LOC.search(line)
        if at and (source := resolve(at[1])):
            lines[number] = source
    return lines


def mlir_statements(text: str) -> set[int]:
    """Lines of an operation."""
    return {number for number, _ in _mlir_statements(text)}


def _mlir_statements(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if line.startswith("    ") and "loc(" in line and not bare.startswith(("^", "}")):
            yield number, line


_DI_LOCATION = re.compile(
    r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+),.*?scope: !(\d+)(?:, inlinedAt: !(\d+))?\)"
)
_DEBUG = re.compile(r"!dbg !(\d+)")


def of_llvm(text: str, file: str) -> dict[int, int]:
    """LLVM IR: `!dbg !N`, the outermost location of the chain `inlinedAt`, which is always in the kernel's own function."""
    del file  # the outermost scope is the kernel's
    table = {found[1]: (int(found[2]), found[4]) for line in text.splitlines() if (found := _DI_LOCATION.match(line))}
    lines: dict[int, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        at = _DEBUG.search(line)
        if at is None or not line.startswith(" "):
            continue
        name: str | None = at[1]
        place: tuple[int, str | None] | None = None
        for _ in table:  # a chain is no longer than the table, or it goes in a circle
            if name is None:
                break
            place = table.get(name)
            name = None if place is None else place[1]
        if place is not None and place[0]:
            lines[number] = place[0]
    return lines


def llvm_statements(text: str) -> set[int]:
    """Lines of an instruction: indented, inside a function. Those of a switch's or a call's further lines are none."""
    found = set()
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        inside = (inside or line.startswith("define ")) and not line.startswith("}")
        if inside and re.match(r"^  (%\S+ = |store|br|ret|call|tail call|switch|fence|unreachable)", line):
            found.add(number)
    return found


_DIRECTIVE = re.compile(r"^\s*\.file\s+(\d+)\s+(?:\"[^\"]*\"\s+)?\"([^\"]*)\"")
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(?P<rest>.*)$")
_CALLER = re.compile(r"(?P<file>[^\s:@\[\]/;]+):(?P<line>\d+):\d+")
_END = re.compile(r"^\s*(\$L__func_end|\.Lfunc_end|\.section)")


def of_assembly(text: str, file: str) -> dict[int, int]:
    """PTX and AMDGCN: the instructions after a `.loc`. LLVM writes into what the location was inlined in a comment beside it,
    innermost first: `// standard.py:263:15 @[ kernel.py:49:26 ]`."""
    files = {found[1]: _base(found[2]) for line in text.splitlines() if (found := _DIRECTIVE.match(line))}
    statements = assembly_statements(text)
    lines: dict[int, int] = {}
    current = 0
    for number, line in enumerate(text.splitlines(), 1):
        if _END.match(line):
            current = 0
        elif at := _LOC.match(line):
            if files.get(at[1]) == file:
                current = int(at[2])
            else:
                callers = [int(one["line"]) for one in _CALLER.finditer(at["rest"]) if one["file"] == file]
                current = callers[-1] if callers else 0
        elif current and number in statements:
            lines[number] = current
    return lines


def assembly_statements(text: str) -> set[int]:
    """Lines of an instruction, of the functions only."""
    found = set()
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if re.match(r"^(\$L__func_begin|\.Lfunc_begin)", bare):
            inside = True
        elif _END.match(line):
            inside = False
        elif (
            inside and bare and bare[0] not in ".;/{})" and not bare.split("//")[0].split(";")[0].rstrip().endswith(":")
        ):
            found.add(number)
    return found


_SASS_AT = re.compile(r'^\s*//## File "\.nv_debug_ptx_txt", line (\d+)')
_SASS = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+\S")


def of_sass(text: str, ptx_lines: dict[int, int]) -> dict[int, int]:
    """SASS as `nvdisasm -gp` writes it: each instruction after the line of PTX that it was assembled from. `ptx_lines` is what
    `of_assembly` found for that PTX."""
    lines: dict[int, int] = {}
    current = 0
    for number, line in enumerate(text.splitlines(), 1):
        if at := _SASS_AT.match(line):
            current = ptx_lines.get(int(at[1]), 0)
        elif current and _SASS.match(line):
            lines[number] = current
    return lines


def sass_statements(text: str) -> set[int]:
    """Lines of an instruction; a further word of its encoding is none."""
    return {number for number, line in enumerate(text.splitlines(), 1) if _SASS.match(line)}


def triton_statements(text: str) -> set[int]:
    """Lines of the body of a Triton kernel that do something: below its last `def`."""
    rows = text.splitlines()
    start = next((number for number in range(len(rows), 0, -1) if rows[number - 1].startswith("def ")), len(rows))
    return {number for number in range(start + 1, len(rows) + 1) if rows[number - 1].strip()}


Reader = Callable[[str, str], dict[int, int]]
READERS: dict[str, tuple[Reader, Callable[[str], set[int]]]] = {
    "ttir": (of_mlir, mlir_statements),
    "ttgir": (of_mlir, mlir_statements),
    "llir": (of_llvm, llvm_statements),
    "ptx": (of_assembly, assembly_statements),
    "amdgcn": (of_assembly, assembly_statements),
}


def _base(path: str) -> str:
    return path.rpartition("/")[2]
