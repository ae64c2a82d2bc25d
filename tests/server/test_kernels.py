"""Questions about a kernel: the derived run, from the answer's status to its page, and everything that is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from compiler.events import LONGEST_KERNEL, load_event
from compiler.ir.metal import MetalPayload
from server.sandbox.isolation import Mode as IsolationMode
from server.sandbox.layers import choose_layers
from server.targets import served
from tests.server.asgi import serving
from tests.server.conftest import FAKE, Service, check_log
from tests.server.test_cli import result

pytestmark = pytest.mark.skipif("sm_90" not in served(), reason="virtual GPUs cannot be had here")

# A run with two kernels and a call, whose derived run says what it was asked.
TWO = """
from compiler.ir.code import CodePayload, LineMarks
from compiler.ir.metal import Candidate, Level, MetalPayload
from compiler.ir.schedule import Kernel, KernelsPayload
from compiler.text import message

ID = "0_0/codegen/forward"

def code(text, strings=(), marks=LineMarks(), id=ID):
    return CodePayload(id=id, language="python", text=text, strings=list(strings), marks=marks)

if phase == "capture":
    stage("codegen", "0/0")
    marks = LineMarks(line=[1, 3, 3, 4, 6], entity=[3, 0, 1, 1, 2])
    put(code("import triton\\n\\nfirst = 1\\nfirst += 1\\n\\nsecond = 2\\nmm()\\n", ["0_0/post_grad/forward/sum", "line/3",
        "line/4", "line/1"], marks), "output_code", "forward")
    put(KernelsPayload(id=ID, kernels=[
        Kernel(name="triton_first", kind="triton", first_line=3, last_line=4),
        Kernel(name="triton_second", kind="triton", first_line=6, last_line=6),
        Kernel(name="mm", kind="extern"),
    ]), "kernels", "forward")
elif question.config == 7:
    done(Failed(cause=message("metal.no_config", index=7, count=1)))
else:
    own = [line - question.first_line + 1 for line in question.marks.line]
    marks = LineMarks(line=own, entity=question.marks.entity)
    level = code(question.text, question.strings, marks, "0_0/metal/forward/" + question.name + "/triton")
    put(MetalPayload(id="m", kernel=question.kernel, target="sm_90", triton="3", config=question.config,
        candidates=[Candidate(blocks={"XBLOCK": 8}, warps=4, stages=1)], chosen=message("metal.only_one"),
        levels=[Level(name="triton", code=level, triton_line=[1, 2], statements=2, linked=2)], needs=[], occupancy=None,
    ), "metal", "forward")
"""
FIRST = "0_0/codegen/forward/triton_first"


def submit(service: Service, source: str, target: str = "sm_90") -> str:
    return service.submit(source, target=target)


@pytest.fixture(scope="module")
def parent(service: Service) -> str:
    run = submit(service, TWO)
    service.stream(run)
    assert service.run(run)["state"] == "finished", service.run(run)["terminal"]
    return run


def ask(service: Service, run: str, kernel: str = FIRST, query: str = "", **more: Any) -> httpx.Response:
    return service.client.post(f"/api/v1/runs/{run}/kernels{query}", json={"kernel": kernel} | more)


def refused(answer: httpx.Response) -> tuple[int, str]:
    error = answer.json()["error"]
    assert error["text"] not in ("", error["key"])
    return answer.status_code, error["key"]


def test_a_question_becomes_a_run_of_its_own(service: Service, parent: str) -> None:
    answer = ask(service, parent)
    derived = answer.json()["id"]
    assert (answer.status_code, derived != parent, answer.json()["reused"]) == (202, True, False)
    events = [
        load_event(orjson.loads(line[6:])) for line in service.stream(derived).splitlines() if line[:5] == b"data:"
    ]
    check_log(events)
    assert [event.body.type for event in events] == ["run_started", "phase_started", "artifact", "finished"]
    # What it was asked: the kernel's own lines, and what they stand for.
    whole = service.client.get(f"/api/v1/runs/{derived}/document").json()
    question = whole["run"]["request"]["question"]
    assert (question["parent"], question["kernel"], question["config"]) == (parent, FIRST, 0)
    assert (question["text"], question["first_line"]) == ("first = 1\nfirst += 1\n", 3)
    assert question["strings"] == ["0_0/post_grad/forward/sum", "line/3"]
    assert question["marks"] == {"line": [3, 3, 4], "entity": [0, 1, 1]}
    # And what it answered, where the generated code of its parent was.
    (compiled,) = whole["compiles"]
    (artifact,) = compiled["stages"][0]["artifacts"]
    assert (compiled["id"], compiled["stages"][0]["name"], artifact["graph"]) == ("0/0", "codegen", "forward")
    assert artifact["payload"]["levels"][0]["code"]["text"] == "first = 1\nfirst += 1\n"
    assert service.run(derived)["request"]["options"]["target"] == "sm_90"


def test_its_stream_resumes_and_its_pages_open(service: Service, parent: str) -> None:
    answer = ask(service, parent, query="?reuse=false").json()
    whole = service.stream(answer["id"])
    frames = whole.split(b"\n\n")[:-1]
    for seq in range(len(frames)):
        assert service.stream(answer["id"], after=seq) == b"".join(frame + b"\n\n" for frame in frames[seq:])
    for link in ("self", "document", "page", "embed"):
        assert service.client.get(answer["links"][link]).status_code == 200
    assert service.client.get(f"/r/{answer['id']}/plain").status_code == 200


def test_the_same_question_has_one_answer_unless_asked_anew(service: Service, parent: str) -> None:
    kernel = "0_0/codegen/forward/triton_second"
    first = ask(service, parent, kernel).json()["id"]
    service.stream(first)
    again = ask(service, parent, kernel)
    assert (again.status_code, again.json()["id"], again.json()["reused"]) == (200, first, True)
    anew = ask(service, parent, kernel, "?reuse=false")
    assert (anew.status_code, anew.json()["id"] != first) == (202, True)
    # Another kernel, or another configuration, is another question.
    other = ask(service, parent, kernel, config=1)
    assert (other.status_code, other.json()["reused"]) == (202, False)
    for run in (anew, other):
        service.stream(run.json()["id"])


def test_two_answers_are_compared(service: Service, parent: str) -> None:
    kernels = (FIRST, FIRST, "0_0/codegen/forward/triton_second")
    runs = [ask(service, parent, kernel, "?reuse=false").json()["id"] for kernel in kernels]
    for run in runs:
        service.stream(run)
    assert service.client.get(f"/api/v1/compare/{runs[0]}/{runs[1]}").json()["equal"] is True
    assert service.client.get(f"/api/v1/compare/{runs[0]}/{runs[2]}").json()["equal"] is False


def test_a_configuration_that_is_not_there_fails_the_run_with_a_sentence(service: Service, parent: str) -> None:
    answer = ask(service, parent, config=7)
    assert answer.status_code == 202
    service.stream(answer.json()["id"])
    terminal = service.run(answer.json()["id"])["terminal"]
    assert (terminal["type"], terminal["cause"]["key"]) == ("failed", "metal.no_config")
    # What failed is no answer.
    again = ask(service, parent, config=7)
    assert (again.status_code, again.json()["reused"]) == (202, False)
    service.stream(again.json()["id"])


@pytest.mark.parametrize(
    ("kernel", "status", "key"),
    [
        ("0_0/codegen/forward/triton_third", 404, "server.kernel_unknown"),
        ("0_0/codegen/backward/triton_first", 404, "server.kernel_unknown"),
        ("1_0/codegen/forward/triton_first", 404, "server.kernel_unknown"),
        ("0_0/post_grad/forward/triton_first", 404, "server.kernel_unknown"),
        ("triton_first", 404, "server.kernel_unknown"),
        ("", 404, "server.kernel_unknown"),
        ("λ/../<script>", 404, "server.kernel_unknown"),
        ("0_0/codegen/forward/mm", 409, "server.kernel_not_triton"),
        ("x" * 1001, 422, "server.invalid_request"),
    ],
)
def test_kernels_that_cannot_be_asked_for(service: Service, parent: str, kernel: str, status: int, key: str) -> None:
    assert refused(ask(service, parent, kernel)) == (status, key)


@pytest.mark.parametrize("config", [-1, 10_001, "first", 1.5])
def test_a_configuration_is_a_number(service: Service, parent: str, config: object) -> None:
    assert refused(ask(service, parent, config=config)) == (422, "server.invalid_request")


def test_of_a_run_that_is_not_there(service: Service) -> None:
    assert refused(ask(service, "nope")) == (404, "server.run_unknown")


def test_of_a_run_for_the_cpu(service: Service) -> None:
    run = submit(service, TWO, "cpu")
    service.stream(run)
    answer = ask(service, run)
    assert refused(answer) == (409, "metal.no_target")
    assert "cpu" in answer.json()["error"]["text"]


def test_a_run_that_goes_on_answers_for_the_kernels_that_it_has(service: Service) -> None:
    run = submit(service, TWO + "\nwhile phase == 'capture': pass")
    try:
        service.until(lambda: service.run(run)["events"] >= 6)
        absent = ask(service, run, "0_0/codegen/backward/triton_first")
        assert (*refused(absent), absent.headers["retry-after"]) == (409, "server.run_not_over", "2")
        derived = ask(service, run)
        assert derived.status_code == 202
        service.stream(derived.json()["id"])
        assert service.run(derived.json()["id"])["state"] == "finished"
    finally:
        service.client.delete(f"/api/v1/runs/{run}")
        service.stream(run)
    assert refused(ask(service, run, "0_0/codegen/backward/triton_first")) == (404, "server.kernel_unknown")


def test_of_a_derived_run(service: Service, parent: str) -> None:
    """It has no generated code of its own."""
    derived = ask(service, parent).json()["id"]
    service.stream(derived)
    assert refused(ask(service, derived)) == (404, "server.kernel_unknown")


def test_a_kernel_that_is_too_long_and_one_that_contradicts_its_code(service: Service) -> None:
    long = submit(
        service,
        TWO.replace('"import triton\\n\\nfirst = 1', f'"#" * {LONGEST_KERNEL} + "\\n\\nfirst = 1').replace(
            "first_line=3", "first_line=1"
        ),
    )
    forged = submit(service, TWO.replace("entity=[3, 0, 1, 1, 2]", "entity=[3, 0, 9, 1, 2]"))
    for run, key in ((long, "server.kernel_too_long"), (forged, "server.artifact_contradicts")):
        service.stream(run)
        assert refused(ask(service, run)) == (409, key)


def test_a_question_is_not_asked_where_snippets_are(service: Service, parent: str) -> None:
    derived = ask(service, parent).json()["id"]
    request = service.run(derived)["request"]
    assert refused(service.client.post("/api/v1/runs", json=request)) == (409, "server.question_here")


def test_without_a_worker_for_the_target(tmp_path: Path) -> None:
    """A run that one service made, in one whose worker serves the CPU only; and in one without any worker, where it waits."""
    data = tmp_path / "data"
    maker = Service(data)
    maker.start()
    maker.ready()
    run = submit(maker, TWO)
    maker.stream(run)
    maker.stop()
    cpu = Service(data, targets="cpu")
    cpu.start()
    cpu.ready()
    try:
        answer = ask(cpu, run)
        assert refused(answer) == (409, "server.target_not_served")
        assert "H100" in answer.json()["error"]["text"]
    finally:
        cpu.stop()
    with serving(data) as alone:
        answer = alone.post(f"/api/v1/runs/{run}/kernels", {"kernel": FIRST})
        assert answer.status_code == 202
        assert alone.get(f"/api/v1/runs/{answer.json()['id']}").json()["state"] == "queued"


# --- the command


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mine") / "two.py"
    made.write_text(TWO)
    return made


@pytest.fixture(scope="module")
def run_file(file: Path) -> Path:
    """The run of the snippet, as a file."""
    made = file.with_suffix(".json")
    code, _out, err = result("run", file, "--target", "h100", "--no-native", "--json", made)
    assert code == 0, err
    return made


def test_the_kernels_of_a_snippet_are_listed(file: Path) -> None:
    code, out, _err = result("kernel", file)
    assert (code, out.splitlines()) == (0, [FIRST, "0_0/codegen/forward/triton_second"])


def test_what_a_kernel_needs_and_all_of_it_as_json(run_file: Path, tmp_path: Path) -> None:
    code, out, err = result("kernel", run_file, "triton_first", "--json", tmp_path / "first.json")
    if choose_layers("auto", "auto", FAKE).mode is IsolationMode.NONE:
        # The source of a kernel is a program, and a file may be anybody's.
        assert (code, "without it" in err) == (1, True)
        return
    assert code == 0, err
    assert out.splitlines()[0] == FIRST
    assert "  triton  2 / 2" in out.splitlines()
    assert out.splitlines()[-1] == "→ 0  XBLOCK=8 num_warps=4 num_stages=1"
    value = MetalPayload.model_validate_json((tmp_path / "first.json").read_bytes())
    assert (value.kernel, value.config) == (FIRST, 0)


def test_a_level_alone_and_beside_the_snippets_lines(file: Path) -> None:
    code, out, _err = result("kernel", file, "forward/triton_first", "--ir", "triton")
    assert (code, out) == (0, "first = 1\nfirst += 1\n\n")
    code, out, _err = result("kernel", file, FIRST, "--ir", "triton", "--lines")
    assert (code, out) == (0, "3 │ first = 1\n3 │ first += 1\n  │\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["{run}", "triton_third"], 2, f"The run has no Triton kernel triton_third. It has: {FIRST}, "),
        (["{run}", "irst"], 2, "The run has no Triton kernel irst."),
        (["{run}", "mm"], 2, "The run has no Triton kernel mm."),
        (["{file}", "triton_first", "--ir", "ptx"], 2, "There is no ptx for sm_90; there is: triton."),
        (["{file}", "triton_first", "--config", "7"], 1, "The kernel has 1 configurations; there is no number 7."),
        (["{file}", "triton_first", "--config", "-1"], 2, "greater than or equal to 0"),
        (["{file}", "triton_first", "--ir", "cubin"], 2, "'cubin' is not one of"),
        (["{file}", "triton_first", "--target", "cpu"], 2, "this run’s target is cpu."),
        (["{file}", "triton_first", "--target", "tpu"], 2, "'tpu' is not one of"),
        (["{forged}", "triton_first"], 2, "contradicts itself"),
        (["{empty}"], 2, "The run has no Triton kernel."),
        (["nope", "triton_first"], 2, "There is neither a file nor a run with the name nope."),
        (["absent.py", "triton_first"], 2, "absent.py"),
    ],
)
def test_what_cannot_be_shown_is_said(
    file: Path, run_file: Path, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    whole = json.loads(run_file.read_bytes())
    (compiled,) = whole["compiles"]
    forged, empty = tmp_path / "forged.json", tmp_path / "empty.json"
    empty.write_text(json.dumps(whole | {"compiles": [compiled | {"stages": []}]}))
    compiled["stages"][0]["artifacts"][1]["payload"]["kernels"] = 3
    forged.write_text(json.dumps(whole))
    named = [one.format(file=file, run=run_file, forged=forged, empty=empty) for one in arguments]
    got, out, err = result("kernel", *named, AOTSCOPE_DATA=str(tmp_path))
    assert (got, out) == (code, "")
    assert said in " ".join(err.replace("│", " ").split())
    assert "Traceback" not in err


def test_several_kernels_of_one_name(tmp_path: Path) -> None:
    twice = tmp_path / "twice.py"
    twice.write_text(
        TWO.replace("\nelif", '\n    stage("codegen", "1/0")\n    again()\nelif').replace(
            'if phase == "capture":',
            "def again():\n"
            '    put(code("x = 1\\n", id="1_0/codegen/forward"), "output_code", "forward", of="1/0")\n'
            '    put(KernelsPayload(id="1_0/codegen/forward", kernels=[Kernel(name="triton_first", kind="triton", first_line=1,\n'
            '        last_line=1)]), "kernels", "forward", of="1/0")\n\nif phase == "capture":',
        )
    )
    code, out, err = result("kernel", twice, "triton_first")
    assert (code, out) == (2, "")
    assert f"Several kernels are called triton_first: {FIRST}, 1_0/codegen/forward/triton_first." in " ".join(
        err.split()
    )


def test_a_run_of_the_store(parent: str, service: Service) -> None:
    code, out, _err = result("kernel", parent, "--data", service.data)
    assert (code, out.splitlines()[0]) == (0, FIRST)
