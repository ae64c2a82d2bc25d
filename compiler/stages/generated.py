"""Reading a generated file: where its kernels stand, what calls them, and which FX nodes each line comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import torch.fx as fx

from compiler.ir.schedule import Kernel, KernelLaunch, UnlinkedStatement
from compiler.stages.provenance import Provenance
from compiler.text import message
from compiler.torch_compat.kernels import Buffer, Definition, Generated, Group

_CPP = re.compile(r"^(cpp_\w+) = async_compile", re.M)
_TRITON = re.compile(r"^(\w+) = async_compile\.triton\(", re.M)
_CPP_LAUNCH = re.compile(r"^ +(?:kernel_)?(cpp_\w+)\(", re.M)
_TRITON_LAUNCH = re.compile(r"^ +(\w+)\.run\(", re.M)
_DEFINED: dict[Literal["cpp", "triton"], re.Pattern[str]] = {"cpp": _CPP, "triton": _TRITON}
_EXTERN = re.compile(r"(extern_kernels\.\w+|torch\.ops\.[\w.]+?(?=\())")
_END = re.compile(r"^'''[,)]")
# The lines of a kernel that compute something; the others are braces, loops and declarations.
_STATEMENT = re.compile(
    r"^(auto tmp\d+|tmp\d+ = |.*\bstore\(|(in_)?out_ptr\d+\[|tmp_acc\d+.* = |_tmp\d+ = |(tl\.)?atomic_)"
)
# What a loop sums up in: C++, Triton.
_ACCUMULATOR = re.compile(r"\b(?:tmp_acc\d+|_tmp\d+)")
_ABOUT = re.compile(r"^\s+(\w+) = |\bout=(\w+)|\bassert_size_stride\((\w+),")


@dataclass(frozen=True)
class Counts:
    """What the summary counts in a generated file; the patterns are its definitions. `kernels` are C++ or Triton's."""

    kernels: list[str]
    launches: int
    extern_calls: int


def count(text: str) -> Counts:
    kernels = [*_CPP.findall(text), *_TRITON.findall(text)]
    launches = [*_CPP_LAUNCH.findall(text), *_TRITON_LAUNCH.findall(text)]
    return Counts(kernels, len(launches), len(_EXTERN.findall(text)))


@dataclass
class Reading:
    """`marks` maps a line, counted from 1, to entities of the post-grad stage and lines of the snippet; `groups` a kernel
    to the fused scheduler nodes it runs. Statements are counted once for each kernel's text."""

    kernels: list[Kernel] = field(default_factory=list)
    groups: dict[str, list[Group]] = field(default_factory=dict)
    marks: dict[int, list[str]] = field(default_factory=dict)
    statements: int = 0
    statements_with_node: int = 0
    statements_with_line: int = 0
    library: dict[str, int] = field(default_factory=dict)
    unlinked: list[UnlinkedStatement] = field(default_factory=list)

    @staticmethod
    def of(generated: Generated, provenance: Provenance) -> Reading:
        reader = _Reader(generated, provenance)
        reader.read_kernels()
        reader.read_wrapper()
        return reader.reading


class _Reader:
    def __init__(self, generated: Generated, provenance: Provenance) -> None:
        self.generated = generated
        self.provenance = provenance
        self.lines = generated.text.split("\n")
        self.reading = Reading()
        self.in_kernel: set[int] = set()
        self.definitions: dict[str, list[Definition]] = {}
        for definition in generated.definitions:
            self.definitions.setdefault(definition.name, []).append(definition)

    def mark(self, line: int, nodes: Iterable[fx.Node]) -> None:
        entities: list[str] = []
        for node in nodes:
            entity = self.provenance.entity(node)
            source_line = self.provenance.line(node)
            if entity is not None:
                entities.append(entity)
            if source_line is not None:
                entities.append(f"line/{source_line}")
        if entities:
            known = self.reading.marks.get(line, [])
            self.reading.marks[line] = list(dict.fromkeys((*known, *entities)))

    def read_kernels(self) -> None:
        for number, text in enumerate(self.lines, 1):
            for kind, defined in _DEFINED.items():
                if found := defined.match(text):
                    self._kernel(found[1], kind, number)

    def _kernel(self, name: str, kind: Literal["cpp", "triton"], header: int) -> None:
        definitions = self.definitions.get(name, [])
        first = header + 1
        end = next((i for i in range(first, len(self.lines) + 1) if _END.match(self.lines[i - 1])), first)
        self.in_kernel.update(range(header, end + 1))
        marked = {
            line: nodes
            for line in range(first, end)
            if (nodes := [node for one in definitions for node in one.marks.get(line - first, ())])
        }
        summed = self._accumulators(marked)
        template = [node for definition in definitions for node in definition.template]
        for line in range(first, end):
            text = self.lines[line - 1].strip()
            is_statement = _STATEMENT.match(text) is not None
            nodes = marked.get(line, [])
            if is_statement and not nodes:
                nodes = [node for name in _ACCUMULATOR.findall(text) for node in summed.get(name, ())] or template
            self.mark(line, nodes)
            if is_statement:
                self._count(line, text, nodes)
        origins = self.provenance.ordered(node for definition in definitions for node in definition.origins)
        self.mark(header, origins)
        groups = list(dict.fromkeys(group for definition in definitions for group in definition.groups))
        self.reading.groups[name] = groups
        self.reading.kernels.append(
            self._made(
                Kernel(
                    name=name,
                    kind=kind,
                    first_line=first,
                    last_line=end - 1,
                    group=" ".join(group.name for group in groups),
                ),
                origins,
            )
        )

    def _accumulators(self, marked: dict[int, list[fx.Node]]) -> dict[str, list[fx.Node]]:
        """What each accumulator sums: Inductor sets it to its first value outside of the loop body."""
        found: dict[str, list[fx.Node]] = {}
        for line, nodes in marked.items():
            for name in _ACCUMULATOR.findall(self.lines[line - 1]):
                found.setdefault(name, []).extend(nodes)
        return found

    def _count(self, line: int, text: str, nodes: list[fx.Node]) -> None:
        reading, provenance = self.reading, self.provenance
        reading.statements += 1
        reading.statements_with_node += bool(nodes)
        if any(provenance.line(node) for node in nodes):
            reading.statements_with_line += 1
            return
        frame = next((frame for node in nodes if (frame := provenance.library(node)) is not None), None)
        if frame is not None:
            place = f"{frame.file}:{frame.line}"
            reading.library[place] = reading.library.get(place, 0) + 1
            return
        name = nodes[0].name if nodes else ""
        cause = message("codegen.unlinked.no_stack", node=name) if nodes else message("codegen.unlinked.no_node")
        reading.unlinked.append(UnlinkedStatement(line=line, text=text, node=name, cause=cause))

    def _made(self, kernel: Kernel, nodes: list[fx.Node]) -> Kernel:
        lines = {line for node in nodes if (line := self.provenance.line(node)) is not None}
        return kernel.model_copy(
            update={
                "nodes": [node.name for node in nodes],
                "ops": [self.provenance.target(node) for node in nodes],
                "lines": sorted(lines),
                "recomputed": [node.name for node in nodes if self.provenance.recomputed(node)],
            }
        )

    def read_wrapper(self) -> None:
        launches: dict[str, list[KernelLaunch]] = {}
        contexts = iter([*self.generated.contexts, (len(self.lines) + 1, None)])
        following = next(contexts)
        context: fx.Node | None = None
        externs: dict[str, int] = {}
        for number, text in enumerate(self.lines, 1):
            while following[0] <= number:
                context, following = following[1], next(contexts)
            if number in self.in_kernel or not text.startswith(" "):
                continue
            launch = _CPP_LAUNCH.match(text) or _TRITON_LAUNCH.match(text)
            if launch:
                self._launched(number, launch[1], len(launches.setdefault(launch[1], [])))
                launches[launch[1]].append(KernelLaunch(line=number, text=text.strip()))
                continue
            buffers = self._about(text)
            nodes = self.provenance.ordered(node for buffer in buffers for node in buffer.origins)
            called = _EXTERN.findall(text)
            if called and not nodes and context is not None:
                nodes = [context]
            self.mark(number, nodes)
            groups = list(dict.fromkeys(buffer.group for buffer in buffers if buffer.group is not None))
            for name in called:
                externs[name] = externs.get(name, 0) + 1
                kernel = Kernel(
                    name=f"{name}#{externs[name]}",
                    kind="extern",
                    launches=[KernelLaunch(line=number, text=text.strip())],
                    group=" ".join(group.name for group in groups),
                )
                self.reading.groups[kernel.name] = groups
                self.reading.kernels.append(self._made(kernel, nodes))
        self.reading.kernels = [
            kernel.model_copy(update={"launches": launches[kernel.name]}) if kernel.name in launches else kernel
            for kernel in self.reading.kernels
        ]

    def _launched(self, line: int, name: str, position: int) -> None:
        """Each definition of a kernel is for one launch, in the same order."""
        definitions = self.definitions.get(name, [])
        mine = definitions[position : position + 1] or definitions
        self.mark(line, self.provenance.ordered(node for definition in mine for node in definition.origins))

    def _about(self, text: str) -> list[Buffer]:
        """The buffers that a line of the wrapper makes, or writes through `out=`."""
        names = [name for groups in _ABOUT.findall(text) for name in groups if name]
        return [self.generated.buffers[name] for name in names if name in self.generated.buffers]
