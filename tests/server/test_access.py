"""The token, where one is needed, and the pace of each client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.datastructures import Headers

from compiler.text import message
from server.access import Pace, client_of
from server.sandbox.launcher import ForkServerError, Launcher
from server.tokens import fit, new_token
from tests.server.asgi import Client, serving
from tests.server.conftest import FAKE, Service
from tests.server.test_cli import result

TOKEN = "0123456789abcdef-_XY"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(tmp_path_factory.mktemp("guarded"), token=TOKEN) as client:
        yield client


def test_nothing_but_the_health_without_it(guarded: Client) -> None:
    paths = ("/", "/r/x", "/r/x/plain", "/embed/x", "/api/v1/runs/x", "/api/v1/examples", "/api/docs", "/static/app.js")
    wrong = ({}, {"authorization": "Bearer nope"}, {"authorization": TOKEN}, {"cookie": f"aotscope-8000={TOKEN}"})
    for path in (*paths, "/api/openapi.json", "/nothing"):
        for headers in wrong:
            answer = guarded.get(path, headers)
            assert (path, answer.status_code, answer.headers["www-authenticate"]) == (path, 401, "Bearer")
            assert answer.json()["error"]["key"] in ("server.token_required", "server.token_wrong")
            assert TOKEN not in answer.text
    assert guarded.get("/api/v1/health").status_code == 200
    assert guarded.get("/api/v1/health/").status_code == 401


def test_programs_send_it_as_a_header(guarded: Client) -> None:
    for scheme in ("Bearer", "bearer"):
        assert guarded.get("/api/v1/examples", {"authorization": f"{scheme} {TOKEN}"}).status_code == 200


def test_a_browser_opens_the_address_and_has_a_cookie(guarded: Client) -> None:
    entered = guarded.get(f"/r/a%20b?lang=zh&token={TOKEN}")
    assert (entered.status_code, entered.headers["location"]) == (303, "/r/a%20b?lang=zh")
    cookie, *attributes = entered.headers["set-cookie"].split("; ")
    assert set(attributes) == {"HttpOnly", "Path=/", "SameSite=strict"}
    assert cookie.startswith("aotscope-8000=")
    assert TOKEN not in cookie
    assert guarded.get("/", {"cookie": f"other=1; {cookie}"}).status_code == 200
    # Another port's server of the same host has the cookies of all: it is not the token, and not under our name.
    value = cookie.partition("=")[2]
    for stolen in ({"authorization": f"Bearer {value}"}, {"cookie": f"aotscope-9000={value}"}):
        assert guarded.get("/", stolen).status_code == 401
    assert guarded.get(f"/?token={value}").status_code == 401


def test_an_address_with_the_token_never_leads_elsewhere(guarded: Client) -> None:
    for path in ("//evil.example/x", "/\\evil.example", "///evil.example"):
        entered = guarded.get(f"http://127.0.0.1:8000{path}?token={TOKEN}")
        assert httpx.URL("http://127.0.0.1/").join(entered.headers["location"]).host == "127.0.0.1"
        assert not entered.headers["location"].startswith(("//", "/\\"))


def test_pages_answer_with_a_form_and_no_script(guarded: Client) -> None:
    headers = {"accept": "text/html,*/*", "accept-language": "zh"}
    for path, sentence in (("/", "此服务器需要令牌"), ("/r/x?token=%3Cscript%3E", "这不是此服务器的令牌")):
        answer = guarded.get(path, headers)
        assert (answer.status_code, answer.headers["content-type"]) == (401, "text/html; charset=utf-8")
        assert sentence in answer.text
        assert '<form method="get">' in answer.text
        assert "<script" not in answer.text
        policy = answer.headers["content-security-policy"]
        assert ("script-src" in policy, "default-src 'none'" in policy, "form-action 'self'" in policy) == (
            False, True, True,
        )  # fmt: skip


def test_without_isolation_the_server_makes_one_and_says_why(tmp_path: Path) -> None:
    service = Service(tmp_path, isolation="none")
    service.start()
    try:
        service.ready()
        said = service.client.headers.pop("authorization")
        assert fit(said.removeprefix("Bearer "))
        assert service.client.get("/api/v1/health").json()["isolation"]["key"] == "isolation.none"
        assert service.client.post("/api/v1/runs", json={"source": "pass"}).status_code == 401
        service.client.headers["authorization"] = said
        assert service.stream(service.submit("print(1)")).endswith(b'"error":null}\n\n')
    finally:
        service.stop()


def test_a_worker_alone_runs_nothing_for_strangers() -> None:
    launcher = Launcher(FAKE, warm=True, isolation="none", strangers=True)
    with pytest.raises(ForkServerError) as refused:
        launcher.ready()
    assert refused.value.cause == message("server.strangers_refused")
    assert launcher.pid is None


def test_unfit_tokens_and_addresses_are_refused(tmp_path: Path) -> None:
    code, _out, err = result("serve", "--data", tmp_path, AOTSCOPE_TOKEN="short")
    assert (code, "AOTSCOPE_TOKEN is not fit" in err) == (2, True)
    compose = {"AOTSCOPE_BEHIND": "compose", "AOTSCOPE_ISOLATION": "none"}
    code, _out, err = result("serve", "--data", tmp_path, "--host", "0.0.0.0", "--port", "0", **compose)
    assert (code, "0.0.0.0 is not a loopback address." in err) == (1, True)
    made = {new_token() for _ in range(50)}
    assert (len(made), all(map(fit, made))) == (50, True)
    assert not any(map(fit, ("", "x" * 15, "x" * 20 + "&", "é" * 20, "a b" * 10)))


def test_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("server.access.time.monotonic", lambda: now)
    pace = Pace(6)
    assert [pace.take("a") for _ in range(8)] == [None] * 6 + [10, 10]
    assert pace.take("b") is None
    now += 9.5
    assert pace.take("a") == 1
    now += 0.6
    assert [pace.take("a"), pace.take("a")] == [None, 10]
    now += 1000
    assert [pace.take("a") for _ in range(7)] == [None] * 6 + [10]
    assert [Pace(0).take("a") for _ in range(1000)] == [None] * 1000
    for number in range(20_000):
        pace.take(f"c{number}")
    assert len(pace._left) == 10_000


def test_clients_are_told_apart() -> None:
    def of(peer: str, *said: str, proxies: int = 0) -> str:
        raw = [(b"x-forwarded-for", line.encode()) for line in said]
        return client_of({"type": "http", "client": (peer, 1)}, Headers(raw=raw), proxies)

    assert of("10.0.0.1") == "10.0.0.1"
    # What a client says of itself counts for nothing.
    assert of("10.0.0.1", "1.2.3.4") == "10.0.0.1"
    assert of("127.0.0.1", "6.6.6.6, 1.2.3.4", proxies=1) == "1.2.3.4"
    assert of("127.0.0.1", "6.6.6.6", "1.2.3.4, 10.0.0.9", proxies=2) == "1.2.3.4"
    assert of("127.0.0.1", proxies=1) == "127.0.0.1"
    assert of("2001:db8:1:2:3:4:5:6") == of("2001:db8:1:2:ffff::1") == "2001:db8:1:2"


def test_too_many_runs_of_one_client(tmp_path: Path) -> None:
    with serving(tmp_path, runs_per_minute=2) as client:
        answers = [client.post("/api/v1/runs", json) for json in ({"source": "1"}, {"sauce": "1"}, {"source": "2"})]
        assert [answer.status_code for answer in answers] == [202, 422, 429]
        assert 28 <= int(answers[2].headers["retry-after"]) <= 30
        assert answers[2].json()["error"]["key"] == "server.too_fast"
        assert client.get("/api/v1/health").status_code == 200
