"""The command line: `aotscope serve`, `worker`, `run`, `compare`, `export`, `kernel`, `examples`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from compiler.events import Mode, Options, StageName
from compiler.targets import BY_ID, TargetId, canonical, names
from compiler.text import message, render
from server.settings import Settings, load
from server.terminal import visible

app = typer.Typer(
    help="A visual compiler explorer for torch.compile.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

WRONG_USAGE = 2


class Form(StrEnum):
    """What `export` can make."""

    TRACE = "trace"
    MEMORY = "memory"
    SCRIPT = "script"
    ISSUE = "issue"
    SVG = "svg"
    DOT = "dot"


class Ir(StrEnum):
    """What `kernel` can print: the levels of `compiler.ir.metal.LevelName`."""

    TRITON = "triton"
    TTIR = "ttir"
    TTGIR = "ttgir"
    LLIR = "llir"
    PTX = "ptx"
    SASS = "sass"
    AMDGCN = "amdgcn"


Data = Annotated[Path | None, typer.Option(help="Folder of the database and the artifacts.", show_default=False)]


def _settings(**overrides: str | int | None) -> Settings:
    try:
        return load(None, **overrides)
    except ValueError as fault:
        raise _stop(str(fault)) from None


def _stop(sentence: str, code: int = WRONG_USAGE) -> typer.Exit:
    Console(stderr=True).print(Text(visible(sentence)), style="bold red")
    return typer.Exit(code)


def _target(name: str) -> TargetId:
    """Any name of a target. Raises typer.BadParameter."""
    found = BY_ID.get(str(canonical(name)))
    if found is None:
        raise typer.BadParameter(f"{name!r} is not one of: {', '.join(names())}.", param_hint="--target")
    return found.id


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Loopback address to listen on.", show_default=False)] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.", show_default=False)] = None,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Serve only; workers are started elsewhere.")] = False,
    data: Data = None,
) -> None:
    """Start the explorer and its worker."""
    from dataclasses import replace

    from server.address import CannotServeError, is_loopback, open_socket
    from server.sandbox.isolation import IsolationError, Mode
    from server.sandbox.isolation.text import outer_sentence, refusal, sentence
    from server.sandbox.layers import choose_layers
    from server.tokens import fit, new_token

    settings = _settings(host=host, port=port, data=None if data is None else str(data))
    if settings.token and not fit(settings.token):
        raise _stop(render(message("server.token_unfit")))
    try:
        listener = open_socket(settings)
    except CannotServeError as fault:
        raise _stop(render(fault.cause), 1) from None
    said: list[str] = []
    open_to_all = settings.isolation == Mode.NONE
    # A runner that is kept elsewhere says for itself what is in force.
    if not no_worker and not settings.runner:
        try:
            layers = choose_layers(settings.outer, settings.isolation, settings.child)
        except IsolationError as fault:
            raise _stop(render(refusal(settings.isolation, fault.step, fault.reason)), 1) from None
        found = layers.found
        outer = outer_sentence(layers.outer, layers.outer_reason)
        said.append(f"Isolation. {render(sentence(layers.mode, found.landlock_abi))} {render(outer)}")
        open_to_all = layers.mode is Mode.NONE
        if open_to_all and settings.isolation != Mode.NONE:
            why = message("server.isolation_tried", namespaces=found.namespaces.said, landlock=found.landlock.said)
            said.append(render(why))
    if open_to_all and not is_loopback(settings.host):
        raise _stop(render(message("server.not_loopback", host=settings.host)), 1)
    if open_to_all and not settings.token:
        settings = replace(settings, token=new_token())
        said.append(render(message("server.token_made")))
    elif settings.token:
        said.append(render(message("server.token_set")))
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{name}:{listener.getsockname()[1]}"
    console = Console(stderr=True, soft_wrap=True)
    shown = f"{address}/?token={settings.token}" if settings.token else address
    console.print(Text.assemble("aotscope is on ", (shown, "bold")))
    for line in said:
        console.print(Text(line, style="dim"))
    from server import serve as serving

    serving.serve(settings, listener, worker=not no_worker)


@app.command()
def worker(
    data: Data = None,
    lifeline: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Take runs from the queue and run them."""
    from server.worker.agent import main as work

    work(_settings(data=None if data is None else str(data)), lifeline)


@app.command()
def runner(
    folder: Annotated[Path, typer.Argument(help="Folder for the socket: this user's, and closed to others.")],
    target: Annotated[str, typer.Option(help=f"What the code is compiled for: {', '.join(names())}.")] = "cpu",
) -> None:
    """Keep the process that runs are forked from, and nothing else, for workers elsewhere (AOTSCOPE_RUNNER)."""
    from server.sandbox.runner import replace_with_runner
    from server.targets import refused

    asked = _target(target)
    if (reason := refused().get(asked)) is not None:
        raise _stop(render(message("server.target_not_served", target=BY_ID[asked].name, why=render(reason))), 1)
    replace_with_runner(folder, asked, _settings())


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="The snippet. It runs in its own folder.", show_default=False)],
    target: Annotated[
        str, typer.Option(help=f"What the code is compiled for: {', '.join(names())}.", show_default=True)
    ] = "cpu",
    mode: Annotated[Mode, typer.Option(help="auto: training when anything requires grad, else inference.")] = Mode.AUTO,
    native: Annotated[bool, typer.Option(help="Compile with the C++ compiler, run, time and compare.")] = True,
    until: Annotated[StageName | None, typer.Option(help="The last stage to show.", show_default=False)] = None,
    json: Annotated[
        str | None, typer.Option(metavar="PATH|-", help="Write the run as one JSON document.", show_default=False)
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the run as one HTML file.", show_default=False)] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write torch's structured trace there, for tlparse.", show_default=False),
    ] = None,
) -> None:
    """Explore a file. Exit code: 0; 1 when it could not be run; 2 for wrong usage; 130 when cancelled."""
    from server import local

    options = Options(target=_target(target), mode=mode, native=native, until=until, trace=trace is not None)
    try:
        raise typer.Exit(local.run_file(file, options, _settings(), json=json, html=html, trace=trace))
    except local.UnusableError as fault:
        raise _stop(render(fault.cause)) from None


@app.command()
def compare(
    a: Annotated[
        str, typer.Argument(metavar="A", help="A snippet (.py), a run as a file (.json, .json.gz), or a run's id.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="What it is held against.")],
    target: Annotated[str, typer.Option(help=f"What the snippets are compiled for: {', '.join(names())}.")] = "cpu",
    target_b: Annotated[
        str | None, typer.Option(help="Target of B, where it is another one.", show_default=False)
    ] = None,
    mode: Annotated[Mode, typer.Option(help="Mode of the snippets that are run.")] = Mode.AUTO,
    mode_b: Annotated[Mode | None, typer.Option(help="Mode of B, where it is another one.", show_default=False)] = None,
    native: Annotated[bool, typer.Option(help="Compile with the C++ compiler, run, time and compare.")] = False,
    until: Annotated[StageName | None, typer.Option(help="The last stage to run.", show_default=False)] = None,
    details: Annotated[bool, typer.Option("--details", help="Show each node, kernel and line that differs.")] = False,
    json: Annotated[
        str | None, typer.Option(metavar="PATH|-", help="Write the comparison as JSON.", show_default=False)
    ] = None,
    data: Data = None,
) -> None:
    """Hold two runs against each other, stage by stage. Exit code: 0 when the compiler made the same of both; 1 when not; 2 when
    they could not be compared."""
    from server.compare import compare as compared
    from server.compare.text import lines

    settings = _settings(data=None if data is None else str(data))
    options = [
        Options(target=_target(on), mode=one, native=native, until=until)
        for on, one in ((target, mode), (target_b or target, mode_b or mode))
    ]
    documents = [_document(name, settings, which) for name, which in zip((a, b), options, strict=True)]
    try:
        found = compared(*documents)
    except (LookupError, TypeError, ValueError, ArithmeticError):
        raise _stop(render(message("server.artifact_contradicts"))) from None
    text = found.model_dump_json(indent=2) + "\n"
    if json not in (None, "-"):
        _write(Path(str(json)), text.encode())
    if json == "-":
        sys.stdout.write(text)
    else:
        sys.stdout.writelines(f"{visible(line)}\n" for line in lines(found, details))
    raise typer.Exit(0 if found.equal else 1)


@app.command()
def export(
    run: Annotated[str, typer.Argument(help="A snippet (.py), a run as a file (.json, .json.gz), or a run's id.")],
    form: Annotated[Form, typer.Argument(help="What to make of it.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="PATH", help="The file to write.")],
    graph: Annotated[
        str, typer.Option(help="For script, svg and dot: COMPILE/STAGE/GRAPH, for example 0_0/joint/joint.")
    ] = "",
    series: Annotated[str, typer.Option(help="For memory: dry_run, plan, compiled or eager.")] = "",
    target: Annotated[str, typer.Option(help=f"What a snippet is compiled for: {', '.join(names())}.")] = "cpu",
    mode: Annotated[Mode, typer.Option(help="Mode of a snippet that is run.")] = Mode.AUTO,
    native: Annotated[bool, typer.Option(help="Compile with the C++ compiler, run, time and compare.")] = True,
    data: Data = None,
) -> None:
    """Write a run, or one of its graphs, in a form that another tool reads."""
    from server import local
    from server.exports.files import make

    settings = _settings(data=None if data is None else str(data))
    whole = _document(run, settings, Options(target=_target(target), mode=mode, native=native, until=None))
    try:
        _write(output, make(whole, form.value, graph=graph, series=series))
    except local.UnusableError as fault:
        raise _stop(render(fault.cause)) from None


@app.command()
def kernel(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A snippet (.py), a run as a file (.json, .json.gz), or a run's id.")
    ],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="KERNEL",
            help="Its name, with graph and compile where several share it. Without: a list of the run's kernels.",
        ),
    ] = None,
    ir: Annotated[
        Ir | None, typer.Option(help="Print this level instead of what the kernel needs.", show_default=False)
    ] = None,
    lines: Annotated[bool, typer.Option("--lines", help="With --ir: the snippet's line before each line.")] = False,
    config: Annotated[int, typer.Option(min=0, max=10_000, help="Which configuration, counted from 0.")] = 0,
    target: Annotated[str, typer.Option(help=f"What a snippet is compiled for: {', '.join(names())}.")] = "h100",
    mode: Annotated[Mode, typer.Option(help="Mode of a snippet that is run.")] = Mode.AUTO,
    json: Annotated[
        str | None,
        typer.Option(metavar="PATH|-", help="Write everything about the kernel as JSON.", show_default=False),
    ] = None,
    data: Data = None,
) -> None:
    """Take a Triton kernel of a run for a GPU down to machine code; no GPU is needed. Exit code: 0; 1 when Triton could not
    compile it; 2 for wrong usage."""
    from server import local, metal

    settings = _settings(data=None if data is None else str(data))
    whole = _document(run, settings, Options(target=_target(target), mode=mode, native=False, until=StageName.CODEGEN))
    try:
        if name is None:
            sys.stdout.writelines(f"{visible(entity)}\n" for entity in metal.kernels(whole))
            return
        request = metal.asked(whole, name, config)
        own = Path(run).suffix == ".py"
        made, terminal = local.answer(request, settings, Console(stderr=True, highlight=False), own=own)
        found = metal.payload_of(made)
        if found is None:
            raise typer.Exit(local.EXIT_CODES[terminal.type] or 1)
        shown = metal.summary(found) if ir is None else metal.level_text(found, ir.value, lines)
        text = "".join(f"{visible(line)}\n" for line in shown)
    except local.UnusableError as fault:
        raise _stop(render(fault.cause)) from None
    except (LookupError, TypeError, ValueError):
        raise _stop(render(message("server.artifact_contradicts"))) from None
    if json is not None:
        document = found.model_dump_json(indent=2) + "\n"
        if json == "-":
            text = document
        else:
            _write(Path(json), document.encode())
    sys.stdout.write(text)


def _document(name: str, settings: Settings, options: Options) -> dict[str, Any]:
    """The document of a run, or an end with a sentence."""
    from server import local
    from server.sides import document_of

    def run(file: Path) -> dict[str, Any]:
        made, terminal = local.run_once(file, options, settings, Console(stderr=True, highlight=False))
        if local.EXIT_CODES[terminal.type]:
            raise typer.Exit(WRONG_USAGE)
        return made

    try:
        return document_of(name, settings, run)
    except local.UnusableError as fault:
        raise _stop(render(fault.cause)) from None


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as fault:
        raise _stop(render(message("server.cannot_write", file=str(path), error=str(fault)))) from None


@app.command()
def examples() -> None:
    """List the examples."""
    from server.examples import example_files
    from server.examples import examples as gallery

    table = Table(box=None, pad_edge=False)
    table.add_column("file", no_wrap=True)
    table.add_column("shows")
    for file, example in zip(example_files(), gallery(), strict=True):
        title = example.title if example.group == "questions" else f"{example.title}."
        table.add_row(Text(str(file)), Text(f"{title} {example.description}"))
    Console(width=None if sys.stdout.isatty() else 200).print(table)


@app.command(hidden=True)
def record(
    files: Annotated[list[Path] | None, typer.Argument(help="Examples; all of the gallery when none is named.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder of the recordings.")] = None,
) -> None:
    """Run examples as the server would, and write their recordings (gzip)."""
    from server import local
    from server.examples import FOLDER, example_files

    try:
        raise typer.Exit(local.record_examples(files or example_files(), output or FOLDER / "recorded", _settings()))
    except local.UnusableError as fault:
        raise _stop(render(fault.cause)) from None


def main() -> None:
    """The entry point."""
    app()


if __name__ == "__main__":
    main()
