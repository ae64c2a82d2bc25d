"""The snippet: read, understood, loaded and run, in one of its two forms.

*Declared*: module-level `model` and `inputs` (and what else `tests/corpus/README.md` lists), which we compile and call.
*Script*: anything else, run as `__main__` with its own calls of `torch.compile`.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import linecache
import random
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch.utils import _pytree as pytree

from compiler.errors import SnippetError
from compiler.events import Mode, RunRequest
from compiler.session import Sources
from compiler.text import Message, message
from compiler.torch_compat.compile_calls import BeforeCall, Recorder, ScriptCall, recording
from compiler.torch_compat.compiles import is_generated

LOAD_SEED = 0
CALL_SEED = 1234
DECLARED_NAMES = (
    "model", "inputs", "kwargs", "loss", "calls", "compile_kwargs", "config", "scenario", "rng",
)  # fmt: skip


@dataclass(frozen=True)
class Snippet:
    """What is known without running it. `lines` maps a module-level name to the line that defines it first;
    `texts` to the source of that statement. `root` is the folder whose files are the user's too."""

    source: str
    form: Literal["declared", "script"]
    file: Path
    lines: dict[str, int]
    texts: dict[str, str]
    module_class: str = ""
    root: Path | None = None

    def sources(self) -> Sources:
        main = str(self.file)
        return Sources(main=main, files={main: self.file.name}, root=str(self.root) if self.root else None)


@dataclass(frozen=True)
class Loaded:
    """A declared snippet after its module code ran: what to compile, and what to call it with."""

    snippet: Snippet
    model: Callable[..., Any]
    calls: list[tuple[Any, ...]]
    kwargs: dict[str, Any]
    loss: Callable[[Any], Any] | None
    compile_kwargs: dict[str, Any]
    config: dict[str, dict[str, Any]]
    scenario: Callable[[Callable[..., Any]], Any] | None
    rng: bool
    assumed: tuple[Message, ...] = ()


@dataclass(frozen=True)
class CallResult:
    """Copies of what one call left behind. `outputs` are named by their path (`out`, `out[0]`, `out.logits`), `gradients` by
    parameter or input, `buffers` are the model's buffers and the inputs as they are after the call."""

    outputs: dict[str, torch.Tensor] = field(default_factory=dict)
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)
    buffers: dict[str, torch.Tensor] = field(default_factory=dict)


# --- understanding ---------------------------------------------------------------------------------------------------


def understand(request: RunRequest, filename: Path, root: Path | None = None) -> Snippet:
    """Read a snippet without running it. Raises SnippetError for a syntax error, or for a declared form that lacks a half."""
    try:
        tree = ast.parse(request.source, filename.name)
    except SyntaxError as error:
        raise SnippetError(message("snippet.syntax", text=error.msg), error.lineno, str(error)) from None
    except ValueError as error:  # a null byte
        raise SnippetError(message("snippet.syntax", text=str(error)), 1) from None
    lines: dict[str, int] = {}
    texts: dict[str, str] = {}
    for statement in tree.body:
        for name in _defined(statement):
            lines.setdefault(name, statement.lineno)
            texts[name] = ast.get_source_segment(request.source, statement) or ""
    compiles = any(_compiles_now(statement) for statement in tree.body)
    mentions = compiles or any(_is_compile(node) for node in ast.walk(tree))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and _is_module_class(node)]
    module_class = classes[0].name if classes else ""
    if "model" in lines and "inputs" in lines and not compiles:
        form: Literal["declared", "script"] = "declared"
    elif "model" in lines and not mentions:
        raise SnippetError(message("snippet.no_inputs"), lines["model"])
    elif "inputs" in lines and not mentions:
        raise SnippetError(message("snippet.no_model"), lines["inputs"])
    else:
        form = "script"
    return Snippet(request.source, form, filename.resolve(), lines, texts, module_class, root)


def _defined(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name).split(".")[0] for alias in statement.names)
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
    elif isinstance(statement, (ast.If, ast.With, ast.Try, ast.For)) and not _is_main_guard(statement):
        for inner in ast.iter_child_nodes(statement):
            if isinstance(inner, ast.stmt):
                yield from _defined(inner)


def _is_main_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.dump(statement.test)


def _compiles_now(statement: ast.stmt) -> bool:
    """Whether a module-level statement calls torch.compile itself, rather than from a function that it defines."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Lambda, ast.FunctionDef, ast.ClassDef)):
            continue
        if _is_compile(node):
            return True
        stack.extend(ast.iter_child_nodes(node))
    return False


def _is_compile(node: ast.AST) -> bool:
    """A call or decorator `torch.compile`, `model.compile()`, or `compile` as imported from torch."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return any(_names_compile(part) for part in node.decorator_list)
    return isinstance(node, ast.Call) and _names_compile(node.func)


def _names_compile(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Name):
        return node.id == "compile"
    return isinstance(node, ast.Attribute) and node.attr == "compile" and ast.dump(node.value) != ast.dump(_RE)


_RE = ast.Name(id="re", ctx=ast.Load())


def _is_module_class(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).split(".")[-1] == "Module" for base in node.bases)


# --- running the user's module code ------------------------------------------------------------------------------------


def user_line(error: BaseException, sources: Sources) -> int | None:
    """The innermost line of the snippet that an exception passed through. The line that a syntax error names, in the snippet."""
    if isinstance(error, SyntaxError) and error.filename == sources.main:
        return error.lineno
    steps = [step for step in traceback.walk_tb(error.__traceback__) if step[0].f_code.co_filename == sources.main]
    # What Dynamo generates has one line only: the function's first.
    written = [line for frame, line in steps if not is_generated(frame.f_code)]
    lines = written or [line for _, line in steps]
    return lines[-1] if lines else None


def user_traceback(error: BaseException, sources: Sources) -> str:
    """The user's frames of an exception, outermost first, as Python prints them; file names as shown to the user."""
    lines = []
    for frame in traceback.extract_tb(error.__traceback__):
        if sources.is_user(frame.filename):
            lines.append(f'  File "{sources.shown(frame.filename)}", line {frame.lineno}, in {frame.name}')
            lines += [f"    {frame.line}"] if frame.line else []
    return "\n".join(lines)


def snippet_fault(error: BaseException, sources: Sources, *, called: bool = False, graphs: int = 0) -> SnippetError:
    """An exception of the snippet's own code as what is shown of it. `called` says that something compiled had been called
    before it, and `graphs` how many were compiled."""
    line = user_line(error, sources)
    text = sources.told(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        cause = message("snippet.import", module=error.name)
    elif isinstance(error, ImportError):
        cause = message("snippet.import_name", text=str(error))
    elif isinstance(error, SystemExit):
        cause = message("snippet.exit", code=str(error.code))
    elif isinstance(error, MemoryError) or "DefaultCPUAllocator: can't allocate memory" in text:
        cause = message("snippet.memory")
    elif graphs:
        cause = message("snippet.raised_after_compile", error=type(error).__name__, count=graphs)
    elif called:
        cause = message("snippet.raised_after_call", error=type(error).__name__)
    else:
        cause = message("snippet.raised", error=type(error).__name__)
    return SnippetError(cause, line, text)


def _execute(snippet: Snippet, name: str) -> types.ModuleType:
    """Run the snippet's text as a fresh module of this name. What it raises goes through."""
    file = str(snippet.file)
    module = types.ModuleType(name)
    module.__file__ = file
    module.__builtins__ = __builtins__  # type: ignore[attr-defined]
    # Without a time of change, linecache keeps the text as it was given: stack traces show what ran.
    text = snippet.source
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    sys.modules[name] = module
    code = compile(text, file, "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return module


@contextlib.contextmanager
def _search_path(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder))


# --- the declared form ---------------------------------------------------------------------------------------------------


def load(snippet: Snippet, device: str = "cpu") -> Loaded:
    """Run the module code of a declared snippet afresh, seeded; what it declares is then on `device`. Raises SnippetError with
    the line to blame."""
    torch.manual_seed(LOAD_SEED)
    try:
        with _search_path(snippet.file.parent):
            module = _execute(snippet, "snippet")
        found = {name: getattr(module, name, None) for name in DECLARED_NAMES}
        if device != "cpu":
            found = {name: _moved(value, device) for name, value in found.items()}
    except (Exception, SystemExit) as error:  # the user's own code: told as such
        raise snippet_fault(error, snippet.sources()) from error
    model = found["model"]
    if not callable(model):
        raise SnippetError(message("snippet.model_not_callable", type=type(model).__name__), snippet.lines.get("model"))
    assumed: list[Message] = []
    calls = [_arguments(call, "calls", snippet, assumed) for call in found["calls"] or ()]
    calls = calls or [_arguments(found["inputs"], "inputs", snippet, assumed)]
    return Loaded(
        snippet=snippet,
        model=model,
        calls=calls,
        kwargs=_checked(found["kwargs"], dict, "kwargs", snippet) or {},
        loss=found["loss"],
        compile_kwargs=_checked(found["compile_kwargs"], dict, "compile_kwargs", snippet) or {},
        config=_checked(found["config"], dict, "config", snippet) or {},
        scenario=found["scenario"],
        rng=bool(found["rng"]),
        assumed=tuple(assumed),
    )


def _moved(value: Any, device: str) -> Any:
    """The model and its arguments where the target is, whatever made them. What is there already is left alone."""
    if isinstance(value, torch.nn.Module):
        tensors = (*value.parameters(), *value.buffers())
        return value.to(device) if any(tensor.device.type != device for tensor in tensors) else value
    if not isinstance(value, (tuple, list, dict, torch.Tensor)):
        return value

    def there(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device.type == device:
            return tensor
        moved = tensor.detach().to(device)
        return moved.requires_grad_(tensor.requires_grad)

    return pytree.tree_map_only(torch.Tensor, there, value)


def _arguments(value: Any, name: str, snippet: Snippet, assumed: list[Message]) -> tuple[Any, ...]:
    if isinstance(value, (tuple, list)):
        return tuple(value)
    if isinstance(value, torch.Tensor):
        assumed.append(message("source.one_input", name=name))
        return (value,)
    raise SnippetError(
        message("snippet.wrong_type", name=name, wanted="tuple", type=type(value).__name__), snippet.lines.get(name)
    )


def _checked(value: Any, wanted: type, name: str, snippet: Snippet) -> Any:
    if value is None or isinstance(value, wanted):
        return value
    raise SnippetError(
        message("snippet.wrong_type", name=name, wanted=wanted.__name__, type=type(value).__name__),
        snippet.lines.get(name),
    )


def named_tensors(value: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor in a value with its path, looking into containers, registered pytrees and dataclasses."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for part in dataclasses.fields(value):
            yield from named_tensors(getattr(value, part.name), f"{name}.{part.name}")
    else:
        for path, leaf in pytree.tree_flatten_with_path(value)[0]:
            if leaf is not value:
                yield from named_tensors(leaf, name + pytree.keystr(path))


def reachable(model: Any) -> Iterator[torch.Tensor]:
    """The tensors that a model holds: a module its parameters; a function those of what it closes over or names globally."""
    if isinstance(model, torch.Tensor):
        yield model
    elif isinstance(model, torch.nn.Module):
        yield from model.parameters()
    elif isinstance(model, types.MethodType):
        yield from reachable(model.__self__)
    elif isinstance(model, types.FunctionType):
        values = [cell.cell_contents for cell in model.__closure__ or () if _filled(cell)]
        values += [model.__globals__.get(name) for name in model.__code__.co_names]
        for value in values:
            if isinstance(value, (torch.nn.Module, torch.Tensor)):
                yield from reachable(value)


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def requires_grad(loaded: Loaded) -> bool:
    """Whether a parameter or an input of the snippet wants a gradient."""
    given = (tensor for call in loaded.calls for _, tensor in named_tensors((call, loaded.kwargs), "inputs"))
    return any(tensor.requires_grad for tensor in (*reachable(loaded.model), *given))


def resolve_mode(loaded: Loaded, mode: Mode) -> Mode:
    """What `auto` means for this snippet. To run it, give `run_calls` the mode that was asked for."""
    if mode is not Mode.AUTO:
        return mode
    return Mode.TRAINING if requires_grad(loaded) else Mode.INFERENCE


def default_loss(out: Any) -> torch.Tensor | None:
    """The sum of every floating output: real + imaginary for complex, float32 sums for half types, dense for sparse."""
    total: torch.Tensor | None = None
    for _, tensor in named_tensors(out, "out"):
        dense = tensor if tensor.layout == torch.strided else tensor.to_dense()
        real = torch.view_as_real(dense) if dense.is_complex() else dense
        if real.is_floating_point():
            part = real.float().sum() if real.dtype in (torch.float16, torch.bfloat16) else real.sum()
            total = part if total is None else total + part
    return total


def run_calls(loaded: Loaded, fn: Callable[..., Any], mode: Mode, keep: bool) -> list[CallResult]:
    """Every call of the snippet on `fn` (its model, or the compiled one): seed, forward, loss, and backward where the loss
    requires grad. `mode` is the one that was asked for.

    In inference the calls run under `no_grad`, without loss. In training where nothing requires grad, the floating inputs are
    made to. With `keep`, copies of each call's results; otherwise the list is empty. What the model raises goes through."""
    module = loaded.model if isinstance(loaded.model, torch.nn.Module) else None
    if mode is Mode.TRAINING and not requires_grad(loaded):
        for call in loaded.calls:
            for _, tensor in named_tensors(call, "inputs"):
                if tensor.is_leaf and tensor.is_floating_point():
                    tensor.requires_grad_(True)
    results = []
    for call in loaded.calls:
        torch.manual_seed(CALL_SEED)
        if module is not None:
            module.zero_grad(set_to_none=True)
        for _, tensor in named_tensors(call, "inputs"):
            if tensor.is_leaf:
                tensor.grad = None
        if mode is Mode.INFERENCE:
            with torch.no_grad():
                out = fn(*call, **loaded.kwargs)
        else:
            out = fn(*call, **loaded.kwargs)
            loss = (loaded.loss or default_loss)(out)
            if isinstance(loss, torch.Tensor) and loss.requires_grad:
                loss.backward()
        if keep:
            results.append(_snapshot(module, call, out))
    return results


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    detached = tensor.detach()
    return (detached if detached.layout == torch.strided else detached.to_dense()).clone()


def _snapshot(module: torch.nn.Module | None, call: tuple[Any, ...], out: Any) -> CallResult:
    given = list(named_tensors(call, "inputs"))
    gradients = {} if module is None else {name: p.grad for name, p in module.named_parameters()}
    gradients |= {name: tensor.grad for name, tensor in given if tensor.is_leaf}
    buffers = {} if module is None else dict(module.named_buffers())
    return CallResult(
        outputs={name: _copy(tensor) for name, tensor in named_tensors(out, "out")},
        gradients={name: _copy(grad) for name, grad in gradients.items() if grad is not None},
        buffers={name: _copy(tensor) for name, tensor in (*buffers.items(), *given)},
    )


def run_scenario(loaded: Loaded, fn: Callable[..., Any]) -> Any:
    """Run the snippet's own `scenario` in place of the calls; its JSON-able result."""
    assert loaded.scenario is not None
    torch.manual_seed(CALL_SEED)
    return loaded.scenario(fn)


# --- the script form -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScriptRun:
    """What a script did with `torch.compile`: how often it asked for it, and each top-level call of what it got."""

    compiled: int
    calls: tuple[ScriptCall, ...]


def run_script(
    snippet: Snippet,
    *,
    compile_identity: bool,
    before_call: BeforeCall | None = None,
    keep: bool = True,
    backend: str | None = None,
) -> ScriptRun:
    """Run the text as `__main__`, seeded; with `compile_identity`, every `torch.compile` in it gives back what it was given, and
    with `backend` it compiles with that one.

    `before_call` is told of the first top-level call of something compiled. With `keep`, each call's outputs are copied (at most
    `compile_calls.KEPT_CALLS` of them). What the script raises goes through, but for `SystemExit(0)` and `SystemExit(None)`."""
    torch.manual_seed(LOAD_SEED)
    random.seed(LOAD_SEED)
    np.random.seed(LOAD_SEED)
    recorder = Recorder(named_tensors if keep else None, before_call)
    argv, main = sys.argv, sys.modules["__main__"]
    sys.argv = [str(snippet.file)]
    try:
        with recording(recorder, identity=compile_identity, backend=backend), _search_path(snippet.file.parent):
            _execute(snippet, "__main__")
    except SystemExit as leave:
        if leave.code not in (None, 0):
            raise
    finally:
        sys.argv, sys.modules["__main__"] = argv, main
    return ScriptRun(compiled=recorder.compiled, calls=tuple(recorder.calls))
