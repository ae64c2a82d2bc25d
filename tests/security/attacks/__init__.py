"""The attacks, as data. Each is a small hostile program that calls `won` when it got what it wanted.

A program finds `won(evidence)`, `absent(reason)` (the machine does not have what it attacks), `target` (what there is to get, made by
the host), `call(name, *arguments)` (a raw system call that raises OSError), and `os`, `sys`, `time`, `ctypes`, `socket`, `subprocess`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

BOTH = frozenset({"root", "user"})
ROOT = frozenset({"root"})


@dataclass(frozen=True, slots=True)
class Attack:
    """`succeeds` says what would show that it worked. `control`: as whom it works without a sandbox. `wall`: seconds that a sandboxed
    one is given; without a sandbox it gets many. `toolchain`: it starts g++, `torch`: it needs a host that imported torch."""

    name: str
    succeeds: str
    code: str
    control: frozenset[str] = field(default=BOTH)
    wall: float = 20.0
    torch: bool = False


def all_attacks() -> tuple[Attack, ...]:
    """Every attack, by area."""
    from attacks import files, kernel, network, processes, resources, toolchain

    found = tuple(
        attack for area in (files, processes, kernel, network, resources, toolchain) for attack in area.ATTACKS
    )
    assert len({attack.name for attack in found}) == len(found)
    return found
