"""The HTTP contract, against a whole service."""

from __future__ import annotations

import gzip
import hashlib
import threading
from typing import Any

import httpx
import orjson
import pytest

from compiler.events import load_event
from compiler.targets import TARGETS
from server.sandbox.isolation.text import outer_sentence, sentence
from server.sandbox.layers import choose_layers
from tests.server.conftest import FAKE, Service, check_log

RICH = """
stage("source")
stage("dynamo", "0/0")
artifact("x = 1" * 1000)
say(Summary(summary={"joint_nodes": [3]}))
print("λ <script>alert(1)</script>")
"""


@pytest.fixture(scope="module")
def done(service: Service) -> str:
    run = service.submit(RICH)
    service.stream(run)
    return run


def test_a_submitted_run_has_links_that_work(service: Service) -> None:
    answer = service.client.post("/api/v1/runs", json={"source": RICH})
    run = answer.json()["id"]
    assert answer.status_code == 202
    assert answer.json() == {
        "id": run,
        "reused": False,
        "links": {
            "self": f"/api/v1/runs/{run}",
            "events": f"/api/v1/runs/{run}/events",
            "document": f"/api/v1/runs/{run}/document",
            "report": f"/api/v1/runs/{run}/report.html",
            "page": f"/r/{run}",
            "embed": f"/embed/{run}",
        },
    }
    service.stream(run)
    for name in ("self", "document", "page", "embed"):
        assert service.client.get(answer.json()["links"][name]).status_code == 200


def test_reuse_answers_with_the_finished_run(service: Service) -> None:
    source = RICH + "# once"
    first = service.submit(source)
    service.stream(first)
    body = {"source": source, "options": {"native": False}}
    again = service.client.post("/api/v1/runs?reuse=true", json=body)
    assert (again.status_code, again.json()["id"], again.json()["reused"]) == (200, first, True)
    other = service.client.post("/api/v1/runs?reuse=true", json=body | {"source": source + "!"})
    assert (other.status_code, other.json()["reused"]) == (202, False)
    service.stream(other.json()["id"])


def test_run_view(service: Service, done: str) -> None:
    view = service.run(done)
    assert view["created"] < view["started"] < view["ended"]
    assert (view["state"], view["summary"], view["terminal"]["type"]) == ("finished", {"joint_nodes": [3]}, "finished")
    assert (view["request"]["source"], view["engine"]["torch"]) == (RICH, "0-fake")
    assert view["events"] == view["terminal"]["seq"]


def test_events_resume_at_every_seq(service: Service, done: str) -> None:
    whole = service.stream(done)
    frames = [frame + b"\n\n" for frame in whole.split(b"\n\n")[:-1]]
    events = [load_event(orjson.loads(frame.split(b"\n")[1].removeprefix(b"data: "))) for frame in frames]
    check_log(events)
    assert [frame.split(b"\n")[0] for frame in frames] == [f"id: {event.seq}".encode() for event in events]
    for after in range(len(frames) + 1):
        assert service.stream(done, after) == b"".join(frames[after:])
    by_query = service.client.get(f"/api/v1/runs/{done}/events?after=3").content
    assert by_query.endswith(b"".join(frames[3:]))
    # A browser connects again when a stream ends; this tells it not to.
    over = service.client.get(f"/api/v1/runs/{done}/events", headers={"Last-Event-ID": str(len(frames))})
    assert (over.status_code, over.content) == (204, b"")


def test_live_equals_replay_for_many_watchers(service: Service) -> None:
    run = service.submit("import time\nfor i in range(60):\n    print(i)\n    time.sleep(0.01)")
    seen: list[bytes] = [b""] * 6

    def watch(place: int) -> None:
        seen[place] = service.stream(run)

    watchers = [threading.Thread(target=watch, args=(place,)) for place in range(len(seen))]
    for watcher in watchers:
        watcher.start()
    for watcher in watchers:
        watcher.join()
    assert set(seen) == {service.stream(run)}
    assert seen[0].count(b'"type":"printed"') > 5


def test_artifacts_are_compressed_cacheable_and_the_runs_own(service: Service, done: str) -> None:
    document = service.client.get(f"/api/v1/runs/{done}/document").json()
    (artifact,) = document["compiles"][0]["stages"][1]["artifacts"]
    path = f"/api/v1/runs/{done}/artifacts/{artifact['hash']}"
    plain = service.client.get(path, headers={"accept-encoding": "identity"})
    assert hashlib.sha256(plain.content).hexdigest() == artifact["hash"]
    assert plain.json() == artifact["payload"]
    with service.client.stream("GET", path, headers={"accept-encoding": "gzip"}) as answer:
        packed = b"".join(answer.iter_raw())
    assert (answer.headers["content-encoding"], gzip.decompress(packed)) == ("gzip", plain.content)
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert answer.headers["vary"] == "accept-encoding"
    assert service.client.get(path, headers={"if-none-match": answer.headers["etag"]}).status_code == 304
    other = service.submit("pass")
    service.stream(other)
    for bad, status in ((path.replace(done, other), 404), (path[:-1] + "Z", 422), (path[:-64] + "0" * 64, 404)):
        refused = service.client.get(bad)
        assert (refused.status_code, set(refused.json())) == (status, {"error"})


def test_document(service: Service, done: str) -> None:
    document = service.client.get(f"/api/v1/runs/{done}/document").json()
    assert (document["format"], document["summary"], document["payloads"]) == ("document/1", {"joint_nodes": [3]}, {})
    assert [(stage["name"], stage["status"], stage["facts"]) for stage in document["stages"]] == [
        ("source", "ok", {"nodes": 3}),
        ("execute", "skipped", {}),
        ("cache", "skipped", {}),
    ]
    (compiled,) = document["compiles"]
    assert [stage["name"] for stage in compiled["stages"]] == ["dynamo", "codegen"]
    assert compiled["stages"][1]["artifacts"][0]["payload"]["text"] == "x = 1" * 1000
    assert document["run"]["printed"] == {"stdout": "λ <script>alert(1)</script>\n", "stderr": ""}
    assert document["run"]["outcome"]["type"] == "finished"


def test_cancel_queued_and_running(service: Service) -> None:
    loops = [service.submit(f"say(StageStarted(), 'source')\nwhile True: {n}") for n in range(2)]
    service.until(lambda: all(service.run(run)["events"] > 2 for run in loops))
    waiting = service.submit("pass")
    early = service.client.get(f"/api/v1/runs/{waiting}/document")
    assert (early.status_code, early.json()["error"]["key"]) == (409, "server.run_not_over")
    assert service.client.delete(f"/api/v1/runs/{waiting}").json()["state"] == "cancelled"
    assert service.stream(waiting).count(b"id: ") == 1
    for run in loops:
        assert service.client.delete(f"/api/v1/runs/{run}").status_code == 202
    service.until(lambda: all(service.run(run)["state"] == "cancelled" for run in loops), 5)
    assert service.stream(loops[0]).endswith(b'"type":"cancelled"}\n\n')
    # Over is over.
    assert service.client.delete(f"/api/v1/runs/{loops[0]}").json()["state"] == "cancelled"
    service.stream(service.submit("pass"))


def test_a_full_queue_refuses_politely(service: Service) -> None:
    loops = [service.submit(f"while True: {n}") for n in range(2)]
    service.until(lambda: all(service.run(run)["state"] == "running" for run in loops))
    waiting = [service.submit("pass") for _ in range(5)]
    refused = service.client.post("/api/v1/runs", json={"source": "pass"})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
    assert refused.json() == {
        "error": {
            "key": "server.queue_full",
            "params": {"limit": 5},
            "text": "5 runs are waiting already. Try again in a moment.",
        }
    }
    for run in (*waiting, *loops):
        service.client.delete(f"/api/v1/runs/{run}")
    service.until(lambda: service.client.get("/api/v1/health").json()["running"] == 0)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "key"),
    [
        ("GET", "/api/v1/runs/nope", None, 404, "server.run_unknown"),
        ("GET", "/api/v1/runs/nope/events", None, 404, "server.run_unknown"),
        ("GET", "/api/v1/runs/nope/document", None, 404, "server.run_unknown"),
        ("GET", "/api/v1/runs/nope/report.html", None, 404, "server.run_unknown"),
        ("GET", f"/api/v1/runs/nope/artifacts/{'0' * 64}", None, 404, "server.run_unknown"),
        ("DELETE", "/api/v1/runs/nope", None, 404, "server.run_unknown"),
        ("GET", "/api/v1/runs/nope/events?after=x", None, 422, "server.invalid_request"),
        ("GET", "/nothing", None, 404, "server.not_found"),
        ("GET", "/static/../app.py", None, 404, "server.not_found"),
        ("PUT", "/api/v1/runs", {}, 405, "server.method_not_allowed"),
        ("POST", "/api/v1/runs", {}, 422, "server.invalid_request"),
        ("POST", "/api/v1/runs", {"source": 3}, 422, "server.invalid_request"),
        ("POST", "/api/v1/runs", {"source": "", "options": {"target": "tpu"}}, 422, "server.invalid_request"),
        ("POST", "/api/v1/runs", {"source": "", "more": 1}, 422, "server.invalid_request"),
        ("POST", "/api/v1/runs", {"source": "x" * 200_001}, 422, "server.invalid_request"),
        ("POST", "/api/v1/runs", {"source": "x" * 3_000_000}, 413, "server.body_too_large"),
    ],
)
def test_refusals(service: Service, method: str, path: str, body: Any, status: int, key: str) -> None:
    answer = service.client.request(method, path, json=body)
    assert (answer.status_code, answer.json()["error"]["key"]) == (status, key)
    assert answer.json()["error"]["text"] not in ("", key)


def test_a_target_that_no_living_worker_serves_is_refused_at_once(service: Service) -> None:
    serves = {
        target for worker in service.client.get("/api/v1/health").json()["workers"] for target in worker["targets"]
    }
    absent = next(target.id for target in reversed(TARGETS) if target.id not in serves)
    answer = service.client.post("/api/v1/runs", json={"source": "x", "options": {"target": absent}})
    assert (answer.status_code, answer.json()["error"]["key"]) == (409, "server.target_not_served")


def test_refusals_of_what_is_not_json(service: Service) -> None:
    for content in (b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"source": "\\ud800"}'):
        answer = service.client.post("/api/v1/runs", content=content, headers={"content-type": "application/json"})
        assert (answer.status_code, content) == (422, content)


def test_a_body_without_a_length_is_counted(service: Service) -> None:
    answer = service.client.post("/api/v1/runs", content=(b"x" * 100_000 for _ in range(40)))
    assert (answer.status_code, answer.json()["error"]["key"]) == (413, "server.body_too_large")


def test_errors_in_chinese(service: Service) -> None:
    answer = service.client.get("/api/v1/runs/nope", headers={"accept-language": "zh-CN,en;q=0.5"})
    assert answer.json()["error"]["text"] == "没有编号为 nope 的运行。"


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"host": "evil.example:8000"}, "server.host_refused"),
        ({"host": "127.0.0.1.evil.example"}, "server.host_refused"),
        ({"host": "10.0.0.1"}, "server.host_refused"),
        ({"host": "user@localhost"}, "server.host_refused"),
        ({"origin": "http://evil.example"}, "server.origin_refused"),
        ({"origin": "null"}, "server.origin_refused"),
        ({"origin": "http://127.0.0.1:1"}, "server.origin_refused"),
        ({"sec-fetch-site": "cross-site"}, "server.origin_refused"),
        ({"sec-fetch-site": "same-site"}, "server.origin_refused"),
    ],
)
def test_other_sites_are_refused(service: Service, headers: dict[str, str], key: str) -> None:
    answer = service.client.post("/api/v1/runs", json={"source": "pass"}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["key"]) == (403, key)
    if key == "server.host_refused":
        assert service.client.get("/api/v1/health", headers=headers).status_code == 403


def test_own_pages_are_not_refused(service: Service) -> None:
    url = service.client.base_url
    for host in (f"127.0.0.1:{url.port}", f"localhost:{url.port}", f"[::1]:{url.port}"):
        headers = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
        answer = service.client.post("/api/v1/runs", json={"source": "pass"}, headers=headers)
        assert answer.status_code == 202
        service.stream(answer.json()["id"])


def test_security_headers(service: Service, done: str) -> None:
    for path, ancestors in (("/", "'self'"), (f"/r/{done}", "'self'"), (f"/embed/{done}", "*")):
        headers = service.client.get(path).headers
        assert "script-src 'self';" in headers["content-security-policy"]
        assert headers["content-security-policy"].endswith(f"frame-ancestors {ancestors}")
        assert headers["x-content-type-options"] == "nosniff"


def test_pages(service: Service, done: str) -> None:
    assert '<div id="app" data-view="page" data-run="" data-worker="/static/' in service.client.get("/").text
    assert f'data-view="embed" data-run="{done}"' in service.client.get(f"/embed/{done}").text
    absent = service.client.get("/r/%22%3E%3Cscript%3E")
    assert (absent.status_code, "<script>" in absent.text) == (404, False)
    assert "<noscript>" in absent.text


def test_health(service: Service) -> None:
    # A worker says how it is once a second.
    service.until(lambda: service.client.get("/api/v1/health").json()["state"] == "ready")
    health = service.client.get("/api/v1/health").json()
    layers = choose_layers("auto", "auto", FAKE)
    assert (health["state"], health["torch"], health["isolation"], health["outer"]) == (
        "ready",
        "0-fake",
        sentence(layers.mode, layers.found.landlock_abi).model_dump(mode="json"),
        outer_sentence(layers.outer, layers.outer_reason).model_dump(mode="json"),
    )
    assert health["workers"][0]["isolation"]["mode"] == layers.mode
    assert health["workers"][0]["isolation"]["outer"] == layers.outer
    assert health["limits"]["capture_seconds"] == 120.0
    assert health["workers"][0]["concurrency"] == 2


def test_documentation_lists_every_operation_without_a_script(service: Service) -> None:
    openapi = service.client.get("/api/openapi.json").json()
    page = service.client.get("/api/docs").text
    for path, operations in openapi["paths"].items():
        for method in operations:
            assert f"{method.upper()} {path}" in page
    assert "torch.nn.Linear" in page
    assert "<script" not in page


def test_examples(service: Service) -> None:
    examples = service.client.get("/api/v1/examples").json()
    assert len(examples) >= 8
    assert all(example["title"] and example["description"] and example["source"] for example in examples)


def test_connection_that_goes_away_leaves_no_reader(service: Service) -> None:
    run = service.submit("import time; time.sleep(0.5)")
    with (
        httpx.Client(base_url=service.client.base_url) as client,
        client.stream("GET", f"/api/v1/runs/{run}/events") as answer,
    ):
        assert next(answer.iter_lines()) == ": connected"
    assert service.stream(run).endswith(b'"error":null}\n\n')


TRACED = 'trace(f"V1201 λ {phase}\\n")'


def test_the_structured_trace_of_each_phase_is_a_log_file(service: Service) -> None:
    run = service.submit(TRACED, trace=True, native=True)
    service.stream(run)
    for phase in ("capture", "native"):
        answer = service.client.get(f"/api/v1/runs/{run}/trace/{phase}")
        assert (answer.status_code, answer.text) == (200, f"V1201 λ {phase}\n")
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        name = f'filename="dedicated_log_torch_trace_{phase}.log"'
        assert answer.headers["content-disposition"] == f"attachment; {name}"


def test_without_the_option_there_is_no_trace(service: Service) -> None:
    run = service.submit(TRACED)
    service.stream(run)
    answer = service.client.get(f"/api/v1/runs/{run}/trace/capture")
    assert (answer.status_code, answer.json()["error"]["key"]) == (404, "server.no_trace")
    assert service.client.get(f"/api/v1/runs/{run}/trace/later").status_code == 422
