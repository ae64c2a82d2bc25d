"""Two graphs of different compiles side by side: which node is which, and what changed of it. Torch-free.

Names do not decide: torch numbers them, so one operator more renames all that come after. Nodes are matched as lines of text
are (longest common runs, difflib's), first by operator and module, then what is left by operator alone, then by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from compiler.ir.graph import Graph, Node, TensorValue, Value

_NAME = re.compile(r"[A-Za-z_]\w*")
# Runs of one kind longer than this on both sides are matched in order, not searched: difflib's time is their product.
_SEARCHED = 4_000_000


@dataclass(frozen=True, slots=True)
class Pair:
    """A node of either graph and its counterpart: without one it was added or removed. `what` names the aspects in which the
    two differ: "op", "args", "shape", "dtype", "device", "layout", "roles", "module", "order"; () when they are the same."""

    before: Node | None
    after: Node | None
    what: tuple[str, ...] = ()


def align(before: Graph, after: Graph) -> list[Pair]:
    """Every node of both graphs once: in the order of `after`, with what was removed where it stood."""
    old, new = before.nodes, after.nodes
    partner: dict[int, int] = {}  # index in new → index in old
    _match(old, new, range(len(old)), range(len(new)), _full_kin, partner)
    for gap_old, gap_new in _gaps(partner, len(old), len(new)):
        _match(old, new, gap_old, gap_new, _short_kin, partner)
    moved = _moved(old, new, partner)
    names = {old[i].name: new[j].name for j, i in (partner | moved).items()}
    pairs: list[Pair] = []
    at = 0
    taken = set(moved.values())
    for j, node in enumerate(new):
        i = partner.get(j)
        if i is None:
            there = moved.get(j)
            other = None if there is None else old[there]
            pairs.append(Pair(other, node, () if other is None else (*_changes(other, node, names), "order")))
            continue
        pairs += [Pair(old[k], None) for k in range(at, i) if k not in taken]
        at = i + 1
        pairs.append(Pair(old[i], node, _changes(old[i], node, names)))
    pairs += [Pair(old[k], None) for k in range(at, len(old)) if k not in taken]
    return pairs


def _full_kin(node: Node) -> tuple[str, ...]:
    return (*_short_kin(node), node.module, node.phase)


def _short_kin(node: Node) -> tuple[str, ...]:
    # A graph's inputs are told apart by what the user calls them, where that is known.
    return (node.op, node.args or node.name) if node.op == "placeholder" else (node.op, node.target)


def _match(
    old: Sequence[Node],
    new: Sequence[Node],
    of_old: range,
    of_new: range,
    kin: Callable[[Node], tuple[str, ...]],
    partner: dict[int, int],
) -> None:
    """Match what lies in two ranges, and add it to `partner`."""
    one = [kin(old[i]) for i in of_old]
    two = [kin(new[j]) for j in of_new]
    head = 0
    while head < min(len(one), len(two)) and one[head] == two[head]:
        partner[of_new[head]] = of_old[head]
        head += 1
    tail = 0
    while tail < min(len(one), len(two)) - head and one[-1 - tail] == two[-1 - tail]:
        partner[of_new[-1 - tail]] = of_old[-1 - tail]
        tail += 1
    one, two = one[head : len(one) - tail], two[head : len(two) - tail]
    if not one or not two:
        return
    # difflib calls frequent elements junk when it may; here they are the operators that matter.
    searched = _work(one, two) <= _SEARCHED
    for start_old, start_new, size in SequenceMatcher(None, one, two, autojunk=not searched).get_matching_blocks():
        for k in range(size):
            partner[of_new[head + start_new + k]] = of_old[head + start_old + k]


def _work(one: list[tuple[str, ...]], two: list[tuple[str, ...]]) -> int:
    """How often difflib looks at a pair of equal elements in its first round."""
    counts: dict[tuple[str, ...], int] = {}
    for key in two:
        counts[key] = counts.get(key, 0) + 1
    return sum(counts.get(key, 0) for key in one)


def _gaps(partner: dict[int, int], olds: int, news: int) -> list[tuple[range, range]]:
    """What lies between two neighbouring matches, where both sides have something."""
    found = []
    i = j = 0
    for to_new, to_old in [*sorted(partner.items()), (news, olds)]:
        if to_old > i and to_new > j:
            found.append((range(i, to_old), range(j, to_new)))
        i, j = to_old + 1, to_new + 1
    return found


def _moved(old: Sequence[Node], new: Sequence[Node], partner: dict[int, int]) -> dict[int, int]:
    """What is left on both sides under one name and is of one kind: it is only in another place."""
    matched = set(partner.values())
    left = {node.name: i for i, node in enumerate(old) if i not in matched}
    found = {}
    for j, node in enumerate(new):
        i = left.get(node.name) if j not in partner else None
        if i is not None and _short_kin(old[i]) == _short_kin(node):
            found[j] = i
    return found


def _changes(old: Node, new: Node, names: dict[str, str]) -> tuple[str, ...]:
    what = []
    if old.target != new.target and old.op != "placeholder":
        what.append("op")
    if old.op != "placeholder" and _renamed(old, names) != new.args:
        what.append("args")
    what += _value_changes(old.value, new.value)
    if set(old.roles) != set(new.roles):
        what.append("roles")
    if old.module != new.module:
        what.append("module")
    return tuple(what)


def _renamed(node: Node, names: dict[str, str]) -> str:
    """The node's arguments with each node that it reads under the name of its counterpart. What has none differs in any case."""
    reads = set(node.inputs)
    return _NAME.sub(lambda hit: names.get(hit[0], f"-{hit[0]}") if hit[0] in reads else hit[0], node.args)


def _value_changes(old: Value | None, new: Value | None) -> list[str]:
    if old == new:
        return []
    if not isinstance(old, TensorValue) or not isinstance(new, TensorValue):
        return ["shape"]
    aspects = (
        ("shape", old.shape != new.shape),
        ("dtype", old.dtype != new.dtype),
        ("device", old.device != new.device),
        ("layout", (old.stride, old.layout) != (new.stride, new.layout) and old.shape == new.shape),
    )
    return [name for name, differs in aspects if differs]
